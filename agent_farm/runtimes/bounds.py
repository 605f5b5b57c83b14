"""Bounds: what of the files around a headless run it may read and may not change."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class Bounds(Struct, frozen=True):
    """Beside its working directory, in which it may do what its permissions say.

    `own` is the directory whose `skills/` may run and whose CLAUDE.md is in the system prompt; without one
    it is the working directory. `reads` are directories that it may read, but not what lies in `hides`;
    `keeps` are files and directories that it may not change, wherever they lie.
    """

    own: Path | None = None
    reads: tuple[Path, ...] = ()
    hides: tuple[Path, ...] = ()
    keeps: tuple[Path, ...] = ()


NONE = Bounds()
