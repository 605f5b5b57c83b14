"""`sessions_…`, `usage`: list and read records of headless sessions, and end those still running."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.operations.declare import acts, reads, served
from agent_farm.operations.operation import (
    SESSIONS,
    Answer,
    Context,
    Failure,
    OfSeveral,
    Request,
)
from agent_farm.operations.served import running, whose
from agent_farm.sessions.records import SessionLog
from agent_farm.sessions.retention import Limits, prune_sessions
from agent_farm.sessions.session import Session, SessionState
from agent_farm.sessions.stores import open_sessions

SessionId = Annotated[str, Meta(description="Id of a session, or an unambiguous prefix")]
OfButler = Annotated[str | None, Meta(description="Only of this butler")]
_BUCKETS = 48


def log_of(context: Context) -> SessionLog:
    return context.butlers.sessions if context.butlers else open_sessions(context.farm.root)


def _butler(context: Context, named: str | None) -> str | None:
    """None means all of them. Only the architect may see another butler's sessions."""
    if context.caller == "architect":
        return named
    return whose(context, named) or running(context).own.name


class SessionsList(Request):
    state: Annotated[tuple[SessionState, ...], Meta(description="Only in this state")] = ()
    source: Annotated[str | None, Meta(description="Only from this trigger source, as in schedule:daily")] = (
        None
    )
    butler: OfButler = None
    since: Annotated[
        float | None, Meta(description="Only those created since then, in seconds since 1970")
    ] = None
    limit: Annotated[int, Meta(ge=0, description="Number of sessions to show, newest first; 0 shows all")] = (
        20
    )


class FoundSessions(Answer):
    """Texts are cut at 200 characters, and `tool_calls` is a number."""

    sessions: tuple[Session, ...]


@reads("Show headless sessions, the newest first", who=SESSIONS)
def sessions_list(context: Context, request: SessionsList) -> FoundSessions:
    found = log_of(context).find(
        butler=_butler(context, request.butler),
        states=request.state,
        source=request.source,
        since=request.since,
        limit=request.limit,
    )
    return FoundSessions(tuple(found))


class SessionsGet(Request):
    session_id: SessionId


class FoundSession(Answer):
    session: Session


@reads("Show one session in full, with its tool calls", who=SESSIONS)
def sessions_get(context: Context, request: SessionsGet) -> FoundSession:
    return FoundSession(log_of(context).load(request.session_id, butler=_butler(context, None)))


class SessionsStop(Request):
    session_ids: Annotated[
        tuple[str, ...], Meta(min_length=1, description="Ids of sessions, or unambiguous prefixes")
    ]


class SessionsStopped(OfSeveral):
    stopped: tuple[Session, ...]


@served(
    "End sessions now, waiting or running",
    effect="destroys",
    who=SESSIONS,
    tolerant=True,
    repeats=True,
    details="Every process that they started ends with them; their records say cancelled. A session can"
    " only end those that it triggered itself.",
)
async def sessions_stop(context: Context, request: SessionsStop) -> SessionsStopped:
    stopped: list[Session] = []
    failed: list[Failure] = []
    for id in dict.fromkeys(request.session_ids):
        try:
            stopped.append(await _end(context, id))
        except AgentFarmError as error:
            if len(request.session_ids) == 1:
                raise
            failed.append(Failure.of(id, error))
    return SessionsStopped(tuple(stopped), failed=tuple(failed))


async def _end(context: Context, id: str) -> Session:
    butlers = running(context)
    session = await butlers.database.run(require_own, context, id)
    butler = await butlers.database.run(butlers.of, session.butler)
    by = f"session {context.caller_id[:8]}" if context.caller == "session" else "the architect"
    return await butler.stop(session.id, by)


def require_own(context: Context, id: str) -> Session:
    """For a session, only sessions that it triggered itself."""
    session = log_of(context).load(id, butler=_butler(context, None))
    if context.caller == "session" and session.parent != context.caller_id:
        raise UsageError(f"Session {id} is not one that this session triggered")
    return session


class SessionsPrune(Request):
    older_than: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Only those that ended more than this many seconds ago"),
    ] = None
    keep: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Keep only this many, the newest ones")
    ] = None
    butler: OfButler = None
    dry_run: Annotated[bool, Meta(description="Show what would be removed, and remove nothing")] = False


class PrunedSessions(Answer):
    removed: Annotated[tuple[str, ...], Meta(description="Their ids")]
    dry_run: bool


@acts(
    "Delete old records for good",
    effect="destroys",
    repeats=True,
    details="Their conversations and memories are deleted, too. Without older_than and keep,"
    " sessions.keep_days and sessions.keep_number apply, as they do for the server once a day.",
)
def sessions_prune(context: Context, request: SessionsPrune) -> PrunedSessions:
    limits = Limits(request.older_than, request.keep)
    if limits == Limits():
        limits = Limits.of(context.farm.settings)
    removed = prune_sessions(log_of(context), limits, butler=request.butler, dry_run=request.dry_run)
    return PrunedSessions(tuple(removed), request.dry_run)


class Usage(Request):
    seconds: Annotated[float, Meta(ge=60, le=400 * 86400, description="How far back")] = 86400.0


class Bucket(Struct, frozen=True, kw_only=True):
    """What happened in a span of time that begins `at`, in seconds since 1970."""

    at: float
    sessions: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0


class UsageOverTime(Answer):
    """`buckets` are equal spans; the last one ends now."""

    seconds: float
    buckets: tuple[Bucket, ...]


@reads("Sum up sessions, tokens and cost over time")
def usage(context: Context, request: Usage) -> UsageOverTime:
    span, now = request.seconds / _BUCKETS, time.time()
    begin = now - request.seconds
    # records written since `now` was read would be in a span after the last one
    found = log_of(context).usage(since=begin, span=span)
    sums = {min(row["span"], _BUCKETS - 1): dict(row) for row in found}
    return UsageOverTime(request.seconds, tuple(_buckets(sums, begin, span)))


def _buckets(sums: Mapping[int, Mapping[str, Any]], begin: float, span: float) -> Iterator[Bucket]:
    names = [name for name in Bucket.__struct_fields__ if name != "at"]
    for index in range(_BUCKETS):
        found = sums.get(index)
        yield Bucket(at=begin + span * index, **({name: found[name] for name in names} if found else {}))
