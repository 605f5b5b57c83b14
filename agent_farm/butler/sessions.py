"""The record of every headless session, from the moment its trigger is accepted."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agent_farm.butler.database import Database, Row
from agent_farm.butler.ownership import forget_owner, is_alive
from agent_farm.butler.tool_calls import ServedCall, merge_calls
from agent_farm.errors import NotFound, UsageError
from agent_farm.runtimes.result import FailureKind

SessionState = Literal["queued", "running", "completed", "failed", "cancelled", "interrupted"]
SESSION_STATES = ("queued", "running", "completed", "failed", "cancelled", "interrupted")
INTERRUPTED = "Interrupted: the process that ran it is gone"


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


async def session_create(database: Database, new: NewSession) -> str:
    """Write the record in state `queued`; its id."""
    await database.run(_insert, database, new)
    return new.id


async def session_start(database: Database, session_id: str) -> None:
    """Write that it runs; a start that was overtaken by the end changes nothing."""
    await database.run(_start, database, session_id)


async def session_complete(database: Database, session_id: str, completion: Completion) -> Completed:
    """Write how it ended; the answer has the tool calls that the server served, too."""
    return await database.run(_complete, database, session_id, completion)


def _insert(database: Database, new: NewSession) -> None:
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO sessions (state, id, butler, owner, parent, trigger_source, prompt, context,"
            " runtime, model, cwd, max_turns, trace_id, created_at)"
            " VALUES ('queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(new.id, new.butler, new.owner, new.parent, new.trigger_source, new.prompt, new.context),
                *(new.runtime, new.model, new.cwd, new.max_turns, new.trace_id, time.time()),
            ),
        )


def _start(database: Database, session_id: str) -> None:
    with database.transaction() as connection:
        connection.execute(
            "UPDATE sessions SET state = 'running', started_at = ? WHERE id = ? AND state = 'queued'",
            (time.time(), session_id),
        )


def _complete(database: Database, session_id: str, end: Completion) -> Completed:
    now = time.time()
    with database.transaction() as connection:
        served = [
            ServedCall(row["name"], json.loads(row["input"]), row["result"], bool(row["failed"]))
            for row in connection.execute(
                "SELECT * FROM served_calls WHERE caller = ? ORDER BY number", (session_id,)
            )
        ]
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


@dataclass(frozen=True, slots=True)
class SessionLog:
    """The records, read; those whose process died are put right first."""

    database: Database
    locks: Path

    def heal(self) -> int:
        """Mark what a dead process left queued or running as interrupted; how many there were.

        Nothing is run again: nobody knows how far it got.
        """
        rows = self.database.query("SELECT DISTINCT owner FROM sessions WHERE state IN ('queued', 'running')")
        dead = [row["owner"] for row in rows if not is_alive(self.locks, row["owner"])]
        count = 0
        for owner in dead:
            with self.database.transaction() as connection:
                count += connection.execute(
                    "UPDATE sessions SET error = ? || CASE state WHEN 'queued' THEN ' (it had not started)'"
                    " ELSE '' END, state = 'interrupted', success = 0, ended_at = ?"
                    " WHERE owner = ? AND state IN ('queued', 'running')",
                    (INTERRUPTED, time.time(), owner),
                ).rowcount
            forget_owner(self.locks, owner)
        return count

    def find(
        self,
        *,
        butler: str | None = None,
        states: Sequence[str] = (),
        source: str | None = None,
        since: float | None = None,
        limit: int = 50,
    ) -> list[dict[str, Any]]:
        """The newest first, without outputs; `limit` 0 gives all."""
        for state in states:
            if state not in SESSION_STATES:
                raise UsageError(
                    f"{state!r} is not a session state", why=f"Valid: {', '.join(SESSION_STATES)}"
                )
        self.heal()
        conditions: list[str] = ["1"]
        values: list[Any] = []
        for column, value in (("butler", butler), ("trigger_source", source)):
            if value is not None:
                conditions.append(f"{column} = ?")
                values.append(value)
        if since is not None:
            conditions.append("created_at >= ?")
            values.append(since)
        if states:
            conditions.append(f"state IN ({', '.join('?' * len(states))})")
            values += states
        rows = self.database.query(
            f"SELECT * FROM sessions WHERE {' AND '.join(conditions)} ORDER BY number DESC LIMIT ?",
            (*values, limit or -1),
        )
        return [session_json(row, whole=False) for row in rows]

    def get(self, session_id: str, *, butler: str | None = None) -> dict[str, Any]:
        """The whole record, by id or by a prefix that only one has; of `butler` alone, where one is given."""
        self.heal()
        rows = self.database.query(
            "SELECT * FROM sessions WHERE substr(id, 1, ?) = ? AND butler = coalesce(?, butler)"
            " ORDER BY number DESC LIMIT 2",
            (len(session_id), session_id, butler),
        )
        exact = [row for row in rows if row["id"] == session_id] or rows
        if not session_id or not exact:
            raise NotFound(f"No session {session_id}", hint="af sessions")
        if len(exact) > 1:
            raise UsageError(f"Several sessions start with {session_id}", hint="af sessions")
        record = session_json(exact[0], whole=True)
        if record["tool_calls"] is None:
            record["tool_calls"] = self._served_so_far(record["id"])
        return record

    def _served_so_far(self, session_id: str) -> list[dict[str, Any]]:
        rows = self.database.query(
            "SELECT * FROM served_calls WHERE caller = ? ORDER BY number", (session_id,)
        )
        served = [
            ServedCall(row["name"], json.loads(row["input"]), row["result"], bool(row["failed"]))
            for row in rows
        ]
        return merge_calls((), served)


def session_json(row: Row, *, whole: bool) -> dict[str, Any]:
    record = {key: row[key] for key in row.keys() if key not in ("number", "owner")}  # noqa: SIM118
    record["success"] = None if row["success"] is None else bool(row["success"])
    record["tool_calls"] = json.loads(row["tool_calls"]) if row["tool_calls"] is not None else None
    if not whole:
        record["tool_calls"] = None if record["tool_calls"] is None else len(record["tool_calls"])
        for key in ("prompt", "output", "context"):
            record[key] = _line(record[key])
    return record


def _line(text: str | None, limit: int = 200) -> str | None:
    if text is None:
        return None
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
