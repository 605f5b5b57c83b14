"""`af init --from-codev`: turns a codev repository into a farm, keeping its protocols and roles."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from agent_farm.builders.absent_tools import absent_tools
from agent_farm.builders.protocol_file import parse_protocol_file
from agent_farm.errors import AgentFarmError, NotFound
from agent_farm.farm.codev_config import CHECK_NAME, Equal, Left, translate
from agent_farm.farm.scaffolding import create_missing, starter_settings
from agent_farm.inside import read_plain, require_inside
from agent_farm.paths import SETTINGS_NAME
from agent_farm.settings_file import add_values

_CONFIG = ".codev/config.json"
# The parts of codev's npm package that af reads from the repository.
_COPIED = ("protocols", "roles")
_MOST_FILES = 500


class FromCodev(Struct, frozen=True):
    """`equals` were stored, `left` have no equivalent, `offered` are checks that protocols run, by name."""

    created: tuple[str, ...]
    kept: tuple[str, ...]
    equals: tuple[Equal, ...]
    left: tuple[Left, ...]
    offered: Mapping[str, str]


def init_from_codev(root: Path) -> FromCodev:
    """Run at the top of a checkout. Whatever exists is kept, settings included."""
    if not (root / "codev").is_dir() and not (root / ".codev").is_dir():
        raise NotFound("codev is not set up here", why="There is no codev/ and no .codev/.", hint="af init")
    found = list(translate(_config(root)))
    wanted = {SETTINGS_NAME: starter_settings().encode(), **_packaged(root)}
    created = create_missing(root, wanted)
    equals = [one for one in found if isinstance(one, Equal)]
    values = {name: value for one in equals for name, value in one.settings.items()}
    stored = add_values(root, values)
    return FromCodev(
        created=tuple(created),
        kept=tuple(name for name in wanted if name not in created),
        equals=tuple(one for one in equals if stored.issuperset(one.settings)),
        left=(
            *(one for one in found if isinstance(one, Left)),
            *(_is_set(one, stored) for one in equals if not stored.issuperset(one.settings)),
            *_elsewhere(root),
        ),
        offered=dict(_offered(root, values)),
    )


def _is_set(one: Equal, stored: set[str]) -> Left:
    names = [name for name in one.settings if name not in stored]
    return Left(one.key, f"{SETTINGS_NAME} sets {', '.join(names)} already")


def _config(root: Path) -> Mapping[str, Any]:
    file = root / _CONFIG
    require_inside(root, file)
    try:
        config = json.loads(read_plain(file))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        raise AgentFarmError(f"{_CONFIG} is not valid JSON", why=str(error)) from None
    if not isinstance(config, dict):
        raise AgentFarmError(f"{_CONFIG} is not a JSON object")
    return config


def _packaged(root: Path) -> dict[str, bytes]:
    """The protocols and roles of the installed codev, for a repository without its own."""
    skeleton = _skeleton()
    if skeleton is None or (root / "codev/protocols").exists():
        return {}
    files: dict[str, bytes] = {}
    for part in _COPIED:
        for path in sorted((skeleton / part).rglob("*")):
            if path.is_file() and not path.is_symlink() and len(files) < _MOST_FILES:
                files[f"codev/{path.relative_to(skeleton).as_posix()}"] = read_plain(path)
    return files


def _skeleton() -> Path | None:
    """The skeleton of the codev on the user's PATH; a repository's own node_modules is not searched."""
    for program in ("codev", "afx"):
        found = shutil.which(program)
        above = Path(os.path.realpath(found)).parents[:4] if found else ()
        for directory in above:
            if (directory / "skeleton/protocols").is_dir():
                return directory / "skeleton"
    return None


def _elsewhere(root: Path) -> Iterator[Left]:
    """What codev finds in places that `af` does not read, and programs that its roles rely on."""
    for part in _COPIED:
        if (root / ".codev" / part).is_dir():
            yield Left(f".codev/{part}", f"af reads codev/{part}; copy yours there")
    if not (root / "codev/protocols").is_dir():
        yield Left("codev/protocols", "npm install -g @cluesmith/codev, then this again copies them")
    for place in ("codev/roles/builder.md", *_files(root, "protocols/*/role.md")):
        with suppress(AgentFarmError, FileNotFoundError):
            require_inside(root, root / place)
            text = read_plain(root / place).decode("utf-8", "replace")
            if absent := absent_tools(text):
                yield Left(place, f"it needs {', '.join(absent)}, not installed here; af spawn --role FILE")


def _offered(root: Path, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Checks that protocols run; if several use one name, the first is offered."""
    known = set[str]()
    for place in _files(root, "protocols/*/protocol.json"):
        with suppress(AgentFarmError, FileNotFoundError):
            require_inside(root, root / place)
            for name, command in parse_protocol_file(read_plain(root / place), place).checks():
                is_new = name not in known and f"check.{name}.command" not in values
                if is_new and CHECK_NAME.fullmatch(name):
                    known.add(name)
                    yield name, command


def _files(root: Path, pattern: str) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.glob(f"codev/{pattern}"))[:_MOST_FILES]
