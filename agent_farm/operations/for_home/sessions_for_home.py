"""Headless sessions for home: the server of the farm here runs them like its own.

Each has the id that home gave it, and begins only once, however often home asks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agent_farm.builders.ref_names import ObjectName
from agent_farm.disk import file_lock
from agent_farm.errors import NotFound
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.operations.for_home.home_checkout import check_out
from agent_farm.operations.operation import Answer, Context
from agent_farm.operations.requests import read_request
from agent_farm.operations.trigger import trigger
from agent_farm.sessions.records import SessionLog
from agent_farm.sessions.session import Session
from agent_farm.sessions.stores import open_sessions

_MOST_BYTES = 8_000_000  # per answer; the rest follows in the next


class Begin(Struct, frozen=True):
    """`request` is one for `trigger`; `commit` is checked out when the session begins."""

    id: str
    commit: ObjectName
    request: dict[str, Any]


class Begun(Answer):
    id: str


class Look(Struct, frozen=True):
    """`seen` is the mark last reported for each; `recorded` are those whose end home has recorded."""

    seen: dict[str, str] = {}
    recorded: tuple[str, ...] = ()


class SessionTold(Struct, frozen=True):
    mark: str
    session: Session


class Looked(Answer):
    """Sessions that have changed since `seen`, and those that do not exist."""

    sessions: tuple[SessionTold, ...]
    missing: tuple[str, ...]


def about_session(
    place: Path, verb: str, request: Mapping[str, Any], given: Mapping[str, str], told: list[str]
) -> Answer:
    """`given` is only for this session: neither this process nor a server it starts gets it."""
    if verb == "session_begin":
        return _begin(place, msgspec.convert(request, Begin), given, told)
    return _look(open_farm(place, told.append), msgspec.convert(request, Look))


def _begin(place: Path, asked: Begin, given: Mapping[str, str], told: list[str]) -> Begun:
    with file_lock(place.with_name(f".{place.name}.lock"), inherit=True) as lock:
        check_out(place, asked.commit, lock)
        farm = open_farm(place, told.append)
    with file_lock(farm.paths.locks / "sessions-for-home.lock"):
        if _load(open_sessions(farm.root), asked.id) is None:
            context = Context(farm, whole_ids=True, tell=told.append, environ={**os.environ, **given})
            fixed = {"new_id": asked.id, "wait": False, "for_home": True}
            trigger.answer_to(context, read_request(trigger, {**asked.request, **fixed}))
    return Begun(asked.id)


def _look(farm: Farm, asked: Look) -> Looked:
    log = open_sessions(farm.root)
    if asked.recorded:
        log.is_recorded_at_home(asked.recorded)
    told, missing, size = list[SessionTold](), list[str](), 0
    for id, seen in asked.seen.items():
        session = _load(log, id)
        if session is None:
            missing.append(id)
        elif size < _MOST_BYTES and (mark := _mark(session)) != seen:
            told.append(SessionTold(mark, session))
            size += len(session.output or "") + len(str(session.tool_calls))
    return Looked(tuple(told), tuple(missing))


def _mark(session: Session) -> str:
    calls = session.tool_calls if isinstance(session.tool_calls, list) else []
    return f"{session.state} {len(session.output or '')} {len(calls)}"


def _load(log: SessionLog, id: str) -> Session | None:
    try:
        found = log.load(id)
    except NotFound:
        return None
    return found if found.id == id else None
