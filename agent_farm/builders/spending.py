"""What a builder has used, turn by turn: differences between the totals that its runtime reports."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, convert

from agent_farm.builders.events import Amount, Count, Moment, Usage
from agent_farm.errors import DamagedFile
from agent_farm.own_files import read_own


class Spent(Struct, frozen=True):
    """What one turn of the start `run` used; `cost` is None if the runtime does not report it."""

    at: float
    run: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float | None


class _Told(Struct, frozen=True):
    """The total of a conversation so far."""

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


def copied_spending(journal: bytes, usage: Usage | None, *, at: float, run: str) -> list[Spent]:
    """The same of a copy of the file; `usage` is what the runtime has told by `at`, in the start `run`."""
    told = list(_parsed(journal.splitlines()))
    if usage is not None:
        last = told[-1] if told else None
        now = _Told(
            at,
            run,
            last.conversation if last else None,
            usage.input_tokens or 0,
            usage.output_tokens or 0,
            usage.cached_tokens or 0,
            usage.cost,
        )
        if last is None or (_goes_on(last, now) and not _goes_on(now, last)):
            told.append(now)
    return list(_differences(told))


def _parsed(lines: Iterable[bytes]) -> Iterator[_Told]:
    """Skips lines that were cut short or that somebody else wrote there."""
    for line in lines:
        with suppress(ValueError, RecursionError):  # msgspec's errors are ValueErrors
            yield convert(json.loads(line), _Told)


def _differences(told: Iterable[_Told]) -> Iterator[Spent]:
    """A total that restarts, as that of a new or truncated conversation, counts from zero."""
    before = _NOTHING
    for now in told:
        base = before if _goes_on(before, now) else _NOTHING
        yield Spent(
            now.at,
            now.run,
            now.input_tokens - base.input_tokens,
            now.output_tokens - base.output_tokens,
            max(0, now.cached_tokens - base.cached_tokens),
            None if now.cost is None else max(0.0, now.cost - (base.cost or 0.0)),
        )
        before = now


def _goes_on(before: _Told, now: _Told) -> bool:
    return (
        now.conversation == before.conversation
        and now.input_tokens >= before.input_tokens
        and now.output_tokens >= before.output_tokens
    )
