"""The scripts in a directory's `skills/`, each named by path, so that nothing else can run in their place."""

from __future__ import annotations

import os
import re
from pathlib import Path

RUNNERS = ("", "./", "sh ", "bash ", "python ", "python3 ")
_MOST_SCRIPTS = 400
# no character that the rules of a CLI, or a shell, would interpret
_PLAIN = re.compile(r"skills/[A-Za-z0-9_.+/-]+")
_SAFE = re.compile(r"[A-Za-z0-9_.+/-]+")


def skill_scripts(directory: Path, *, executable: bool = False) -> tuple[str, ...]:
    """The scripts there now, relative to `directory`; a link to somewhere else does not count."""
    inside = os.path.join(os.path.realpath(directory), "skills", "")
    found: list[str] = []
    for place, subdirectories, names in os.walk(directory / "skills"):
        subdirectories.sort()
        for name in sorted(names):
            path = Path(place, name)
            script = path.relative_to(directory).as_posix()
            if not _PLAIN.fullmatch(script) or not os.path.realpath(path).startswith(inside):
                continue
            if path.is_file() and (not executable or os.access(path, os.X_OK)):
                found.append(script)
        if len(found) >= _MOST_SCRIPTS:
            break
    return tuple(found[:_MOST_SCRIPTS])


def skill_commands(directory: Path, cwd: Path) -> tuple[str, ...]:
    """The ways to start each script from `cwd`."""
    runners = RUNNERS if directory == cwd else [runner for runner in RUNNERS if runner != "./"]
    return tuple(runner + path for path in skill_paths(directory, cwd) for runner in runners)


def skill_paths(directory: Path, cwd: Path, *, executable: bool = False) -> tuple[str, ...]:
    """The name of each script as seen from `cwd`."""
    scripts = skill_scripts(directory, executable=executable)
    if directory == cwd:
        return scripts
    paths = (str(directory / script) for script in scripts)
    return tuple(path for path in paths if _SAFE.fullmatch(path))
