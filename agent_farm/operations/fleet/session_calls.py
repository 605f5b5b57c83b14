"""Calls to a machine about headless sessions; each one blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_farm.errors import Unreachable
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import read_book
from agent_farm.fleet.calling import call
from agent_farm.operations.fleet.held_slots import take_in
from agent_farm.operations.fleet.rows_elsewhere import answer_of
from agent_farm.operations.fleet.work_elsewhere import push
from agent_farm.operations.for_home.sessions_for_home import Begin, Begun, Look, Looked
from agent_farm.operations.sessions import SessionsStop, SessionsStopped
from agent_farm.sessions.other_machines import SessionOrder
from agent_farm.sessions.session import Session

_REF = "refs/agent-farm/home/sessions"
_BEGIN_SECONDS = 120.0
_LOOK_SECONDS = 20.0
_STOP_SECONDS = 30.0
_ENDS = ("completed", "failed", "cancelled", "interrupted")
# What a machine reports of a session's end; everything else stays as it was requested here.
_TOLD = (
    "state", "conversation_id", "output", "error", "failure", "success", "tool_calls", "duration",
    "input_tokens", "output_tokens", "cached_tokens", "cost",
)  # fmt: skip


def prepare(farm: Farm, host: str, pushed: dict[str, str]) -> str:
    """Send the commit that the session starts from; the session has not begun yet."""
    commit = farm.repository.resolve_commit("HEAD")
    try:
        if host not in read_book(farm).machines:
            take_in(farm, host)
        if pushed.get(host) != commit:
            push(farm, read_book(farm), host, {_REF: commit})
            pushed[host] = commit
    except Unreachable as error:
        error.began = False
        raise
    return commit


def begin(farm: Farm, host: str, session: Session, commit: str, order: SessionOrder) -> None:
    """Repeating it begins no second session. On Unreachable, `began` tells whether it may have begun."""
    wish: dict[str, Any] = {
        "prompt": session.prompt,
        "context": session.context,
        "max_turns": session.max_turns,
        "runtime": session.runtime,
        "model": session.model,
        "permissions": session.permissions,
        "timeout": order.timeout,
        "resume": session.resumes,
        "butler": order.butler,
        "yes": order.agreed,
    }
    asked = msgspec.to_builtins(Begin(session.id, commit, wish))
    found = _ask(farm, host, "session_begin", asked, _BEGIN_SECONDS, environment=order.keys)
    if answer_of(Begun, found, host).id != session.id:
        raise Unreachable(f"{host} has not said what became of {session.id}")


def look(farm: Farm, host: str, seen: Mapping[str, str], recorded: Sequence[str]) -> Looked:
    asked = msgspec.to_builtins(Look(dict(seen), tuple(recorded)))
    found = answer_of(Looked, _ask(farm, host, "session_look", asked, _LOOK_SECONDS), host)
    named = {*found.missing, *(one.session.id for one in found.sessions)}
    if wrong := named - seen.keys():
        raise Unreachable(f"{host} answered for {min(wrong)!r:.60}, which it was not asked about")
    return found


def stop(farm: Farm, host: str, session: Session) -> Session | None:
    """The session as it ended there; None if the machine does not say."""
    asked = msgspec.to_builtins(SessionsStop((session.id,)))
    found = answer_of(SessionsStopped, _ask(farm, host, "sessions_stop", asked, _STOP_SECONDS), host)
    return next((told(session, one) for one in found.stopped if one.id == session.id), None)


def told(session: Session, said: Session) -> Session:
    return replace(session, **{name: getattr(said, name) for name in _TOLD})


def has_ended(said: Session) -> bool:
    return said.state in _ENDS


def _ask(
    farm: Farm,
    host: str,
    verb: str,
    request: Mapping[str, Any],
    seconds: float,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    return call(read_book(farm), host, verb, request, environment=environment, seconds=seconds)
