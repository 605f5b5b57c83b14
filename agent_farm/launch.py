"""The one form in which programs are started: plain data, no shell."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct


class LaunchFile(Struct, frozen=True):
    """A file that has to exist before the start."""

    path: Path
    content: str
    mode: int = 0o600


class Launch(Struct, frozen=True):
    """How to start a program. `scratch` is a directory that is emptied when the program has ended."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    files: tuple[LaunchFile, ...] = ()
    scratch: Path | None = None


def absolute_entries(path: str) -> str:
    """Those of PATH that mean the same everywhere: a clone may have brought a program along."""
    return os.pathsep.join(filter(os.path.isabs, path.split(os.pathsep))) or os.defpath


def find_program(name: str, path: str) -> str | None:
    """As `shutil.which` does; without `shutil`, which takes as long to load as a git process to run.

    Entries of PATH that depend on the working directory do not count.
    """
    if os.path.dirname(name):
        return name if _can_run(name) else None
    places = (os.path.join(directory, name) for directory in absolute_entries(path).split(os.pathsep))
    return next(filter(_can_run, places), None)


def _can_run(file: str) -> bool:
    return os.access(file, os.X_OK) and not os.path.isdir(file)


def as_command(*words: str | os.PathLike[str]) -> str:
    """The words as a command line that a person can paste, for hints."""
    return shlex.join(os.fspath(word) for word in words)


def is_no_option(text: str) -> bool:
    """Whether a program takes `text` for a value rather than an option, as an argument of its own."""
    return text.isprintable() and not text.startswith("-")
