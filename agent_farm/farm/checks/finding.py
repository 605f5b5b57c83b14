"""A finding of `af doctor`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec import Struct

Level = Literal["ok", "note", "problem"]


class Finding(Struct, frozen=True):
    """`heal` repairs it and says what it did; `remedy` is the command for a person if there is no `heal`."""

    level: Level
    what: str
    remedy: str | None = None
    heal: Callable[[], str] | None = None


def partly_written(path: Path) -> Finding:
    return Finding(
        "note", f"{path} is a partly written file; its writer was killed", heal=partial(unlink, path)
    )


def unlink(path: Path) -> str:
    path.unlink(missing_ok=True)
    return f"{path.name} is removed"
