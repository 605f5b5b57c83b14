"""Going on with the conversation of a session that has ended."""

from __future__ import annotations

import msgspec

from agent_farm.errors import UsageError
from agent_farm.sessions.records import SessionLog
from agent_farm.sessions.session import Session, SessionRequest


def resumed_request(log: SessionLog, request: SessionRequest, butler: str) -> tuple[SessionRequest, Session]:
    """`request` as it has to be for its runtime to find the conversation, which looks by the place."""
    session = log.load(request.resumes or "", butler=butler)
    _require_conversation(session)
    if request.runtime not in (None, session.runtime):
        raise UsageError(
            f"Session {session.id[:8]} ran on {session.runtime}, not on {request.runtime}",
            why="A conversation goes on with the runtime that has it.",
        )
    if request.cwd not in (None, session.cwd):
        raise UsageError(
            f"Session {session.id[:8]} ran in {session.cwd}",
            why="Its conversation goes on there: leave out --cwd.",
        )
    resumed = msgspec.structs.replace(
        request,
        resumes=session.id,
        runtime=session.runtime,
        cwd=session.cwd,
        model=request.model or session.model,
    )
    return resumed, session


def _require_conversation(session: Session) -> None:
    short = session.id[:8]
    if session.ended_at is None:
        raise UsageError(
            f"Session {short} is still {session.state}",
            why="Its conversation can go on when it has ended.",
            hint=f"af sessions --follow {short}",
        )
    if not session.conversation_id:
        raise UsageError(
            f"Session {short} has no conversation",
            why=f"It ended as {session.state} before {session.runtime} had begun one.",
            hint=f"af sessions {short}",
        )
