"""The record of every headless session, from the moment its trigger is accepted."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from agent_farm.runtimes.result import FailureKind, ToolCall
from agent_farm.sessions.database import Database, Row
from agent_farm.sessions.readable import readable
from agent_farm.sessions.tool_calls import ServedCall, merge_calls

SessionState = Literal["queued", "running", "completed", "failed", "cancelled", "interrupted"]
SESSION_STATES = ("queued", "running", "completed", "failed", "cancelled", "interrupted")
SERVED = "SELECT name, input, result, failed FROM served_calls WHERE caller = ? ORDER BY number"


@dataclass(frozen=True, slots=True)
class NewSession:
    """What is known when a trigger is accepted."""

    id: str
    butler: str
    owner: str
    trigger_source: str
    prompt: str
    runtime: str
    context: str | None = None
    model: str | None = None
    cwd: str | None = None
    max_turns: int = 20
    parent: str | None = None
    trace_id: str | None = None
    resumes: str | None = None
    home: str | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """How a session ended. `tool_calls` is what the runtime reported.

    `failure` is the kind of the error; without a `duration` it is the time since the start, or none for a
    session that never started.
    """

    state: SessionState
    success: bool
    output: str = ""
    tool_calls: tuple[dict[str, Any], ...] = ()
    error: str | None = None
    duration: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None
    conversation_id: str | None = None
    failure: FailureKind | None = None


@dataclass(frozen=True, slots=True)
class Completed:
    """What completing added to what the runtime reported."""

    tool_calls: list[dict[str, Any]]
    duration: float | None


def conversation_home(state: Path, name: str) -> Path:
    """Where a runtime keeps a conversation that goes on with `af run --resume`."""
    return state / "conversations" / name


def asked_to_stop(database: Database, owner: str) -> dict[str, str]:
    """Of the sessions of this process those that somebody wants to end: id -> who."""
    rows = database.query(
        "SELECT id, stop_asked FROM sessions WHERE owner = ? AND stop_asked IS NOT NULL AND ended_at IS NULL",
        (owner,),
    )
    return {row["id"]: row["stop_asked"] for row in rows}


async def session_create(database: Database, new: NewSession) -> str:
    """Write the record in state `queued`; its id."""
    await database.run(_insert, database, new)
    return new.id


async def session_start(database: Database, session_id: str) -> None:
    """Write that it runs; a start that was overtaken by the end changes nothing."""
    await database.run(_start, database, session_id)


async def session_progress(
    database: Database, session_id: str, output: str, calls: Sequence[dict[str, Any]]
) -> None:
    """What a running session has come to; once it has ended nothing is changed."""
    await database.run(_progress, database, session_id, output, calls)


async def session_complete(database: Database, session_id: str, completion: Completion) -> Completed:
    """Write how it ended; the answer has the tool calls that the server served, too."""
    return await database.run(_complete, database, session_id, completion)


def _insert(database: Database, new: NewSession) -> None:
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO sessions (state, id, butler, owner, parent, trigger_source, prompt, context,"
            " runtime, model, cwd, max_turns, trace_id, resumes, home, created_at)"
            " VALUES ('queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(new.id, new.butler, new.owner, new.parent, new.trigger_source, new.prompt, new.context),
                *(new.runtime, new.model, new.cwd, new.max_turns, new.trace_id, new.resumes, new.home),
                time.time(),
            ),
        )


def _start(database: Database, session_id: str) -> None:
    with database.transaction() as connection:
        connection.execute(
            "UPDATE sessions SET state = 'running', started_at = ? WHERE id = ? AND state = 'queued'",
            (time.time(), session_id),
        )


def _progress(database: Database, session_id: str, output: str, calls: Sequence[dict[str, Any]]) -> None:
    with database.transaction() as connection:
        merged = merge_calls(calls, served_calls(connection.execute(SERVED, (session_id,)).fetchall()))
        connection.execute(
            "UPDATE sessions SET output = ?, tool_calls = ? WHERE id = ? AND state = 'running'",
            (output, json.dumps(merged), session_id),
        )


def _complete(database: Database, session_id: str, end: Completion) -> Completed:
    now = time.time()
    with database.transaction() as connection:
        served = served_calls(connection.execute(SERVED, (session_id,)).fetchall())
        calls = merge_calls(end.tool_calls, served)
        connection.execute(
            "UPDATE sessions SET state = ?, success = ?, output = ?, tool_calls = ?, error = ?,"
            " duration = coalesce(?, max(0.0, ? - started_at)), input_tokens = ?, output_tokens = ?,"
            " cached_tokens = ?, cost = ?, conversation_id = ?, failure = ?, ended_at = ? WHERE id = ?",
            (
                *(end.state, int(end.success), end.output, json.dumps(calls)),
                *(end.error, end.duration, now),
                *(end.input_tokens, end.output_tokens, end.cached_tokens, end.cost, end.conversation_id),
                *(end.failure, now, session_id),
            ),
        )
        row = connection.execute("SELECT duration FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return Completed(calls, row["duration"] if row else None)


def served_calls(rows: Sequence[Row]) -> list[ServedCall]:
    return [
        ServedCall(row["name"], json.loads(row["input"]), row["result"], bool(row["failed"])) for row in rows
    ]


def call_json(call: ToolCall) -> dict[str, Any]:
    return dict(readable({**asdict(call), "input": dict(call.input)}))
