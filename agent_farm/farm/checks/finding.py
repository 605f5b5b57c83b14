"""One thing that is not as it should be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`heal` does something about it and says what; `remedy` is the command for a person where it cannot."""

    level: Level
    what: str
    remedy: str | None = None
    heal: Callable[[], str] | None = None
