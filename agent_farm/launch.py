"""The one form in which anything is started: plain data, no shell."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class LaunchFile(NamedTuple):
    """A file that has to be there before the start."""

    path: Path
    content: str
    mode: int = 0o600


class Launch(NamedTuple):
    """`scratch` is a directory that is emptied when what was started has ended."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    files: tuple[LaunchFile, ...] = ()
    scratch: Path | None = None


def as_command(*words: str | os.PathLike[str]) -> str:
    """A command a person can paste, for hints."""
    return shlex.join(os.fspath(word) for word in words)


def is_no_option(text: str) -> bool:
    """Whether a program takes it for a value, where it is an argument of its own."""
    return text.isprintable() and not text.startswith("-")
