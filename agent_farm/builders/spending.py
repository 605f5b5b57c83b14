"""What a builder has used, step by step: differences between what its runtime says after each turn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, convert

from agent_farm.builders.events import Amount, Count, Moment
from agent_farm.errors import DamagedFile
from agent_farm.own_files import read_own


class Spent(Struct, frozen=True):
    """In one turn of the start `run`; `cost` is None where the runtime does not say it."""

    at: float
    run: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float | None


class _Told(Struct, frozen=True):
    """The sum of a conversation so far."""

    at: Moment
    run: str = ""
    conversation: str | None = None
    input_tokens: Count = 0
    output_tokens: Count = 0
    cached_tokens: Count = 0
    cost: Amount | None = None


_NOTHING = _Told(0.0)


def load_spending(path: Path) -> list[Spent]:
    try:
        lines = read_own(path).splitlines()
    except (FileNotFoundError, DamagedFile):
        return []
    return list(_differences(_parsed(lines)))


def _parsed(lines: Iterable[bytes]) -> Iterator[_Told]:
    """A line that was cut short, or that somebody scribbled there, is passed over."""
    for line in lines:
        with suppress(ValueError, RecursionError):  # what msgspec finds wrong is a ValueError
            yield convert(json.loads(line), _Told)


def _differences(told: Iterable[_Told]) -> Iterator[Spent]:
    """A file that is new, or was truncated, is read from its beginning."""
    before = _NOTHING
    for now in told:
        goes_on = (
            now.conversation == before.conversation
            and now.input_tokens >= before.input_tokens
            and now.output_tokens >= before.output_tokens
        )
        base = before if goes_on else _NOTHING
        yield Spent(
            now.at,
            now.run,
            now.input_tokens - base.input_tokens,
            now.output_tokens - base.output_tokens,
            max(0, now.cached_tokens - base.cached_tokens),
            None if now.cost is None else max(0.0, now.cost - (base.cost or 0.0)),
        )
        before = now
