"""How far a session reaches: what it may read, and what of its own butler it may not change."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from agent_farm.paths import FarmPaths
from agent_farm.runtimes.bounds import Bounds
from agent_farm.sessions.butlers import Butler

_MOST_ENTRIES = 1000
# the farm's and git's own: tokens, keys of running builders, credentials for remotes
_NEVER_READ = (".git", ".agent-farm", ".builders")


def session_bounds(
    butler: Butler, cwd: Path, *, root: Path | None = None, checkout: Path | None = None
) -> Bounds:
    """The bounds for a session of `butler` that works in `cwd` and is asked about `checkout`."""
    return Bounds(
        own=butler.directory,
        reads=tuple(readable_entries(checkout)) if checkout and not checkout.is_relative_to(cwd) else (),
        hides=tuple(_farm_files(root, cwd, butler.directory)) if root else (),
        keeps=own_files(butler),
    )


def about_checkout(checkout: Path) -> str:
    return (
        "## The checkout\n\n"
        f"What you are asked about is the checkout at `{checkout}`. Read and search there, by absolute paths,"
        " in what lies in it rather than in the whole of it, and change nothing there: what you write belongs"
        " in your working directory. Paths of the task that are not in your working directory are meant from"
        " the checkout."
    )


def own_files(butler: Butler) -> tuple[Path, ...]:
    """The files that say what its sessions may do: no session may change them for the next."""
    directory = butler.directory
    with suppress(OSError):
        (directory / "skills").mkdir(exist_ok=True)  # what does not exist cannot be protected
    files = (directory / "butler.toml", directory / "CLAUDE.md", directory / "skills")
    return tuple(file for file in (*files, butler.roster / "shared") if file.exists())


def readable_entries(checkout: Path) -> list[Path]:
    """Its entries, one by one, because a search of the whole would include the farm's own files."""
    try:
        entries = sorted(checkout.iterdir())
    except OSError:
        return []
    return [entry for entry in entries if entry.name not in _NEVER_READ and not entry.is_symlink()][
        :_MOST_ENTRIES
    ]


def _farm_files(root: Path, *needed: Path) -> list[Path]:
    """The farm's own files, except where the session works."""
    try:
        entries = sorted(FarmPaths(root).state.iterdir())
    except OSError:
        return []
    return [entry for entry in entries if not any(place.is_relative_to(entry) for place in needed)]
