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


def as_command(*words: str | os.PathLike[str]) -> str:
    """The words as a command line that a person can paste, for hints."""
    return shlex.join(os.fspath(word) for word in words)


def is_no_option(text: str) -> bool:
    """Whether a program takes `text` for a value rather than an option, as an argument of its own."""
    return text.isprintable() and not text.startswith("-")
