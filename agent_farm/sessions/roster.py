"""Which butlers a farm has, by name."""

from __future__ import annotations

from pathlib import Path

from agent_farm.paths import FarmPaths

FILE_NAME = "butler.toml"


def roster_directory(root: Path) -> Path:
    return root / "codev" / "roster"


def farm_butler_name(root: Path) -> str:
    return FarmPaths(root).farm_name


def butler_names(root: Path) -> list[str]:
    """The butlers that `codev/roster/` describes."""
    roster = roster_directory(root)
    return sorted(file.parent.name for file in roster.glob(f"*/{FILE_NAME}"))


def all_butler_names(root: Path) -> list[str]:
    """Those in the roster and, unless there is exactly one, the packaged butler."""
    names = butler_names(root)
    return names if len(names) == 1 else [farm_butler_name(root), *names]


def own_butler_name(root: Path) -> str:
    """The farm's own butler: the only one in the roster, else the packaged one."""
    names = butler_names(root)
    return names[0] if len(names) == 1 else farm_butler_name(root)
