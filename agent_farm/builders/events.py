"""What a builder's runtime and its launcher reported, from the end of `events.jsonl` and from `exit.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, convert
from msgspec.json import Decoder

from agent_farm.errors import DamagedFile
from agent_farm.launch import is_no_option
from agent_farm.own_files import MOST_BYTES, open_own

Reported = Literal["preparing", "working", "waiting", "limited", "idle", "exited", "failed"]
_IN_A_TURN = ("working", "waiting", "limited")
# A builder may have written anything: infinite numbers, or the year 10000, which dates do not support.
Count = Annotated[int, Meta(ge=0, le=2**53)]
Amount = Annotated[float, Meta(ge=0, le=2**53)]
Moment = Annotated[float, Meta(ge=0, lt=253_402_300_800)]

_TAIL_BYTES = 16384
_FARTHEST_BYTES = 1 << 20
QUESTION = "ask_architect"


class Event(Struct, frozen=True):
    at: Moment
    run: str
    source: str
    event: str
    state: Reported | None = None
    reason: str | None = None
    conversation_id: str | None = None
    detail: Any = None

    @property
    def is_submission(self) -> bool:
        """Whether a message reached the model."""
        return isinstance(self.detail, dict) and "said" in self.detail


_EVENTS = Decoder(Event)


class Usage(Struct, frozen=True):
    """Of the whole conversation; a field is None if the runtime does not report it."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cached_tokens: Count | None = None
    cost: Amount | None = None


class Exit(Struct, frozen=True):
    run: str
    at: Moment
    exit_code: int | None
    signal: str | None


def load_events(path: Path) -> list[Event]:
    return list(_parse(_read_tail(path, MOST_BYTES)[0]))


class Report(Struct, frozen=True):
    """What the journal says about one run: `state` is its newest event with a state; `open` began a turn that
    has not ended, in this run or an earlier one; `last` is the time of the newest event.
    """

    state: Event | None = None
    open: Event | None = None
    last: float | None = None


def read_report(path: Path, run: str) -> Report:
    """Read from the end of the journal, and further back only if the end says nothing about this run."""
    events, last = list[Event](), None
    for reach in (_TAIL_BYTES, _FARTHEST_BYTES):
        tail, whole = _read_tail(path, reach)
        known = list(_parse(tail))
        last = known[-1].at if known else None
        events = [event for event in known if event.state]
        if whole or any(event.run == run for event in events):
            break
    own = [event for event in events if event.run == run]
    if not own:
        return Report(None, _open_turn(events), last)
    question = _open_question(events) if own[-1].state == "idle" else None
    return Report(question or own[-1], _open_turn(events), last)


def _read_tail(path: Path, reach: int) -> tuple[list[bytes], bool]:
    """The last lines, and whether they are all; a builder may have replaced the journal with anything."""
    try:
        with open_own(path) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - reach))
            return file.read(reach).splitlines(), size <= reach
    except (FileNotFoundError, DamagedFile):
        return [], True


def _open_turn(events: list[Event]) -> Event | None:
    """The newest sign of a turn that has not ended: neither a crash nor a restart ends one.

    A CLI that has just started is idle too, so idle ends only a turn of its own run. The launcher's report
    counts only for the very first turn, whose prompt the runtime may not have seen yet.
    """
    open_turn: Event | None = None
    any_turn = False
    for event in events:
        ends = event.state == "idle" and open_turn is not None and open_turn.run == event.run
        if ends or event.state == "exited":
            open_turn = None
        elif event.state in _IN_A_TURN and (event.source == "hook" or not any_turn):
            open_turn, any_turn = event, True
    return open_turn


def _open_question(events: list[Event]) -> Event | None:
    """A turn that ended with a question waits for the answer, even after a restart, until the next turn."""
    told = (event for event in reversed(events) if event.source != "launcher")
    turn = dropwhile(lambda event: event.state not in _IN_A_TURN, told)
    since = takewhile(lambda event: event.state != "idle" and not event.is_submission, turn)
    return next((event for event in since if event.event == QUESTION), None)


def last_conversation(events: list[Event], said: str) -> str | None:
    """The id of the last conversation with a message, in any run.

    `said` is the name of the event for a message. Runtimes do not store conversations without a message. If
    `said` is empty, any event counts.
    """
    named = [event.conversation_id for event in events if event.conversation_id and said in ("", event.event)]
    return named[-1] if named else None


class Said(Struct, frozen=True):
    """The answer that ended the last turn, from runtimes that report it."""

    at: Moment
    text: str


def _parse(lines: list[bytes]) -> Iterator[Event]:
    """Skips lines that are not events: interrupted writes, or something that a builder wrote there."""
    for line in lines:
        try:
            event = _event(line)
        except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
            continue
        if is_no_option(event.conversation_id or ""):  # the id becomes an argument
            yield event


def _event(line: bytes) -> Event:
    try:
        return _EVENTS.decode(line)
    except ValueError:  # half a surrogate pair, for example, is JSON to Python but not to msgspec
        return convert(json.loads(line), Event)
