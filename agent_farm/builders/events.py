"""What a builder's runtime and its launcher reported: the tail of `events.jsonl`, and `exit.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from pathlib import Path
from types import NoneType
from typing import Any

from agent_farm.errors import DamagedFile
from agent_farm.own_files import MOST_BYTES, open_own, read_own

REPORTED = frozenset({"preparing", "working", "waiting", "idle", "exited", "failed"})

_TAIL_BYTES = 16384
QUESTION = "ask_architect"
# The `submit_event` of every runtime.
SUBMITTED = ("UserPromptSubmit", "BeforeAgent", "chat.message", "message")


@dataclass(frozen=True, slots=True)
class Event:
    at: float
    run: str
    source: str
    event: str
    state: str | None
    reason: str | None
    conversation_id: str | None
    detail: Any = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Of the whole conversation; None where the runtime does not say."""

    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cost: float | None


@dataclass(frozen=True, slots=True)
class Exit:
    run: str
    at: float
    exit_code: int | None
    signal: str | None


def load_events(path: Path) -> list[Event]:
    try:
        lines = read_own(path).splitlines()
    except (FileNotFoundError, DamagedFile):
        return []
    return list(_parse(lines))


def last_state(path: Path, run: str) -> Event | None:
    """The newest event of this run that says something about its state."""
    try:
        with open_own(path) as file:
            size = min(os.fstat(file.fileno()).st_size, MOST_BYTES)
            for reach in (_TAIL_BYTES, size):
                file.seek(max(0, size - reach))
                lines = file.read().splitlines()
                found = [event for event in _parse(lines) if event.run == run and event.state]
                if found or reach >= size:
                    return (_open_question(found) or found[-1]) if found else None
    except (FileNotFoundError, DamagedFile):
        pass
    return None


def last_moment(path: Path) -> float | None:
    """When anything was last written down of a builder, in whichever run."""
    try:
        with open_own(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            moments = [event.at for event in _parse(file.read().splitlines())]
    except (FileNotFoundError, DamagedFile):
        return None
    return moments[-1] if moments else None


def _open_question(found: list[Event]) -> Event | None:
    """A turn that asked and then ended waits for the answer; a message or a next turn is one."""
    if found[-1].state != "idle":
        return None
    turn = dropwhile(lambda event: event.state == "idle", reversed(found))
    since = takewhile(lambda event: event.state != "idle" and event.event not in SUBMITTED, turn)
    return next((event for event in since if event.event == QUESTION), None)


def last_conversation(events: list[Event], said: str) -> str | None:
    """The one that was spoken in last, in whichever run: `said` is the event of a message.

    A conversation in which nothing was said is stored by no runtime. Empty, `said` is any event.
    """
    named = [event.conversation_id for event in events if event.conversation_id and said in ("", event.event)]
    return named[-1] if named else None


def load_usage(path: Path) -> Usage | None:
    try:
        document = json.loads(read_own(path))
        names = ("input_tokens", "output_tokens", "cached_tokens", "cost")
        return Usage(*(document.get(name) for name in names))
    except (FileNotFoundError, DamagedFile, ValueError, AttributeError, RecursionError):
        return None


def load_exit(path: Path) -> Exit | None:
    try:
        document = json.loads(read_own(path))
        ending = Exit(document["run"], document["at"], document["exit_code"], document["signal"])
    except (FileNotFoundError, DamagedFile, ValueError, KeyError, TypeError, RecursionError):
        return None
    whole = isinstance(ending.at, (int, float)) and isinstance(ending.exit_code, (int, NoneType))
    return ending if whole and isinstance(ending.signal, (str, NoneType)) else None


def _parse(lines: list[bytes]) -> Iterator[Event]:
    """Lines that are no event are passed over: a write cut short, or what a builder scribbled there."""
    for line in lines:
        try:
            document = json.loads(line)
            event = Event(
                document["at"],
                document["run"],
                document["source"],
                document["event"],
                document.get("state"),
                document.get("reason"),
                document.get("conversation_id"),
                document.get("detail"),
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
        if _is_whole(event):
            yield event


def _is_whole(event: Event) -> bool:
    texts = (event.run, event.source, event.event)
    maybe = (event.state, event.reason, event.conversation_id)
    return (
        isinstance(event.at, (int, float))
        and all(isinstance(value, str) for value in texts)
        and all(isinstance(value, (str, NoneType)) for value in maybe)
        and (event.state is None or event.state in REPORTED)
    )
