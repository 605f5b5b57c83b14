"""Bounds: which files around it a headless run may read, and which it may not change."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class Bounds(Struct, frozen=True):
    """Limits besides the working directory, where its permissions apply.

    `own` is the directory whose `skills/` may run and whose CLAUDE.md is in the system prompt; by default the
    working directory. `reads` are directories that it may read, except what is in `hides`; `keeps` are files
    and directories that it must not change, wherever they are.
    """

    own: Path | None = None
    reads: tuple[Path, ...] = ()
    hides: tuple[Path, ...] = ()
    keeps: tuple[Path, ...] = ()


NONE = Bounds()
