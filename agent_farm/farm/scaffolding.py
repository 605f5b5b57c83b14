"""`af init`: writes what a repository needs to be a farm, without touching files that exist."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path, PurePosixPath

from agent_farm.disk import cannot_write
from agent_farm.errors import AgentFarmError
from agent_farm.paths import SETTINGS_NAME
from agent_farm.settings_file import commented_line
from agent_farm.settings_keys import KEYS, NAMED_TABLES, Key

SCAFFOLD = Path(__file__).parent.parent / "scaffold"
SKILL = SCAFFOLD / "skills/agent-farm/SKILL.md"
# One CLI looks for skills in the first, all others in the second.
SKILL_PLACES = (".claude/skills/agent-farm/SKILL.md", ".agents/skills/agent-farm/SKILL.md")


def init_farm(root: Path, *, skill: bool = False) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Write what is missing at the top of a checkout; returns the files created, and those that existed.

    With `skill`, this includes the skill for an AI architect. Anything in the way is refused before the first
    file is written.
    """
    wanted = scaffold_files() | (dict.fromkeys(SKILL_PLACES, SKILL.read_bytes()) if skill else {})
    created = create_missing(root, wanted)
    return tuple(created), tuple(name for name in wanted if name not in created)


def create_missing(root: Path, wanted: Mapping[str, bytes]) -> list[str]:
    """Names are relative to `root`. Anything in the way of one is refused before the first is written."""
    missing = [name for name in wanted if not _is_there(root, name)]
    return [name for name in missing if create_file(root / name, wanted[name])]


def scaffold_files() -> dict[str, bytes]:
    """What a new farm gets, by path relative to its root."""
    files = {
        path.relative_to(SCAFFOLD).as_posix(): path.read_bytes()
        for path in sorted((SCAFFOLD / "codev").rglob("*"))
        if path.is_file()
    }
    return {**files, SETTINGS_NAME: starter_settings().encode()}


def _is_there(root: Path, name: str) -> bool:
    """Whether a file with that name exists; AgentFarmError if something else is in its place."""
    for parent in reversed(PurePosixPath(name).parents[:-1]):
        directory = root / parent
        _require_inside(root, directory)
        if os.path.lexists(directory) and not directory.is_dir():
            raise AgentFarmError(
                f"{directory} is not a directory",
                why="af init needs to create files in it.",
                hint=f"mv {directory} {directory}.old && af init",
            )
    target = root / name
    if target.is_dir():
        raise AgentFarmError(f"{target} is a directory", why="af init needs to create a file there.")
    return os.path.lexists(target)  # a symbolic link that points nowhere is the user's, too


def _require_inside(root: Path, directory: Path) -> None:
    if directory.is_symlink() and not directory.resolve().is_relative_to(root.resolve()):
        raise AgentFarmError(
            f"{directory} leads out of the repository",
            why=f"It is a symbolic link to {os.readlink(directory)}.",
            hint=f"ls -l {directory}",
        )


def create_file(path: Path, content: bytes) -> bool:
    """Write a new file; False if another process was faster."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            try:
                file.write(content)
                file.flush()
            except OSError:
                path.unlink()
                raise
    except FileExistsError:
        return False
    except OSError as error:
        raise cannot_write(path, error) from error
    return True


_HEAD = """\
# Settings of this farm. Every key is optional and is shown with its default, if it has one.
# To set one, take away the "#" before its name.
# `af config list` shows what is in force and where it comes from.
"""
_EXAMPLES = {
    "runtimes": ("claude-code", "one runtime, by its"),
    "check": ("lint", "a further check, under its own"),
}


def starter_settings() -> str:
    """TOML that sets nothing, with one line of explanation for each key."""
    tables = groupby(KEYS, key=lambda key: key.name.partition(".")[0])
    blocks = [_HEAD, *(_table(name, list(keys)) for name, keys in tables)]
    for table, keys in NAMED_TABLES.items():
        name, what = _EXAMPLES[table]
        blocks.append(f"# Settings of {what} name.\n# {_table(f'{table}.{name}', list(keys))}")
    return "\n".join(blocks)


def _table(name: str, keys: list[Key]) -> str:
    return "\n".join([f"[{name}]", *(line for key in keys for line in _lines(key))]) + "\n"


def _lines(key: Key) -> list[str]:
    text = f"# {key.text}"
    if key.choices:
        text += f" ({', '.join(key.choices)})"
    return [f"{text}.", commented_line(key)]
