"""The records of all headless sessions, from the moment that their triggers are accepted."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from agent_farm.errors import NotFound, UsageError
from agent_farm.sessions.database import Database, Row, on_its_thread
from agent_farm.sessions.failures import readable
from agent_farm.sessions.session import Session
from agent_farm.sessions.tool_calls import merge_calls, served_calls

INTERRUPTED = "Interrupted: the process that ran it is gone"
_FIELDS = tuple(one.name for one in msgspec.structs.fields(Session))
_TEXTS = ("prompt", "context", "output")
_UNENDED_HERE = "(state = 'queued' OR state = 'running' AND host IS NULL)"
# Only the beginnings of texts, and no tool calls, since both can be megabytes. Earlier versions also wrote
# calls that SQLite does not accept as JSON; their number is not known.
_SHORT = ", ".join(
    f"substr({name}, 1, 1000) AS {name}"
    if name in _TEXTS
    else "CASE WHEN json_valid(tool_calls) THEN json_array_length(tool_calls) END AS tool_calls"
    if name == "tool_calls"
    else name
    for name in _FIELDS
)


@on_its_thread
def session_create(database: Database, session: Session) -> Session:
    """Store the record as `queued`; returns the session with its time."""
    created = msgspec.structs.replace(session, created_at=time.time())
    columns = _columns(created)
    database.write(
        f"INSERT INTO sessions ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
        tuple(columns.values()),
    )
    return created


@on_its_thread
def session_start(database: Database, session_id: str) -> None:
    """Record that it is running; has no effect if it has ended in the meantime."""
    database.write(
        "UPDATE sessions SET state = 'running', started_at = ? WHERE id = ? AND state = 'queued'",
        (time.time(), session_id),
    )


@on_its_thread
def session_place(database: Database, session_id: str, host: str) -> None:
    """Record that this machine runs it, before the machine is asked: from here on it may have begun."""
    database.write(
        "UPDATE sessions SET state = 'running', host = ?, started_at = ? WHERE id = ? AND state = 'queued'",
        (host, time.time(), session_id),
    )


@on_its_thread
def session_take_back(database: Database, session_id: str, wish: str) -> None:
    """Record that it has not begun, because no machine was asked."""
    database.write(
        "UPDATE sessions SET state = 'queued', host = ?, started_at = NULL"
        " WHERE id = ? AND state = 'running'",
        (wish, session_id),
    )


@on_its_thread
def session_progress(
    database: Database, session_id: str, output: str, calls: Sequence[dict[str, Any]]
) -> None:
    """Record the progress of a running session; has no effect once it has ended."""
    with database.transaction() as connection:
        merged = merge_calls(calls, served_calls(connection.execute, session_id))
        connection.execute(
            "UPDATE sessions SET output = ?, tool_calls = ? WHERE id = ? AND state = 'running'",
            (output, json.dumps(merged, allow_nan=False), session_id),
        )


@on_its_thread
def session_complete(database: Database, session: Session) -> Session:
    """Record how it ended; the returned session also has the tool calls that the server served.

    A missing duration becomes the time since the start; a session that never started has none.
    """
    with database.transaction() as connection:
        reported = session.tool_calls if isinstance(session.tool_calls, list) else []
        merged = merge_calls(reported, served_calls(connection.execute, session.id))
        return _end(connection, msgspec.structs.replace(session, tool_calls=merged))


@on_its_thread
def session_complete_without(database: Database, session: Session, reason: str) -> Session:
    """Record how it ended for want of a record of the whole end, which `reason` keeps from being stored."""
    lost = f"Its tool calls, tokens and conversation could not be recorded: {reason}"
    reduced = msgspec.structs.replace(
        session,
        output=readable(session.output),
        error=readable(f"{session.error}; {lost}" if session.error else lost),
        tool_calls=[],
        conversation_id=None,
        input_tokens=None,
        output_tokens=None,
        cached_tokens=None,
        cost=None,
    )
    with database.transaction() as connection:
        return _end(connection, reduced)


def _end(connection: sqlite3.Connection, session: Session) -> Session:
    now = time.time()
    row = connection.execute("SELECT started_at FROM sessions WHERE id = ?", (session.id,)).fetchone()
    started = row["started_at"] if row else None
    duration = session.duration
    if duration is None and started is not None:
        duration = max(0.0, now - started)
    ended = msgspec.structs.replace(
        session, output=session.output or "", duration=duration, started_at=started, ended_at=now
    )
    columns = _columns(ended)
    connection.execute(
        f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in columns)} WHERE id = ?",
        (*columns.values(), session.id),
    )
    return ended


@dataclass(frozen=True, slots=True)
class SessionLog:
    """Reads the records."""

    database: Database

    def heal(self) -> int:
        """Mark what an earlier server left queued or running as interrupted; returns how many there were.

        Nothing is run again, because nobody knows how far it got. What another machine runs continues there.
        """
        return self.database.write(
            "UPDATE sessions SET error = ? || CASE state WHEN 'queued' THEN ' (it had not started)'"
            " ELSE '' END, state = 'interrupted', success = 0, ended_at = ?"
            f" WHERE {_UNENDED_HERE}",
            (INTERRUPTED, time.time()),
        )

    def has_unended(self) -> bool:
        return bool(self.database.query(f"SELECT 1 FROM sessions WHERE {_UNENDED_HERE} LIMIT 1"))

    def elsewhere(self) -> list[Session]:
        """Sessions on other machines, as recorded here."""
        columns = ", ".join(_FIELDS)
        rows = self.database.query(
            f"SELECT {columns} FROM sessions WHERE state = 'running' AND host IS NOT NULL ORDER BY number"
        )
        return [_as_asked(_session(row)) for row in rows]

    def is_recorded_at_home(self, session_ids: Sequence[str]) -> None:
        """Allow these records to be deleted like any others."""
        marks = ", ".join("?" * len(session_ids))
        self.database.write(f"UPDATE sessions SET for_home = 0 WHERE id IN ({marks})", tuple(session_ids))

    def find(
        self,
        *,
        butler: str | None = None,
        states: Sequence[str] = (),
        source: str | None = None,
        since: float | None = None,
        limit: int = 50,
    ) -> list[Session]:
        """The newest first, with texts cut to one line and tool calls as a number. `limit` 0 means all."""
        conditions: list[str] = ["1"]
        values: list[Any] = []
        for condition, value in (
            ("butler = ?", butler),
            ("trigger_source = ?", source),
            ("created_at >= ?", since),
        ):
            if value is not None:
                conditions.append(condition)
                values.append(value)
        if states:
            conditions.append(f"state IN ({', '.join('?' * len(states))})")
            values += states
        rows = self.database.query(
            f"SELECT {_SHORT} FROM sessions WHERE {' AND '.join(conditions)} ORDER BY number DESC LIMIT ?",
            (*values, limit or -1),
        )
        return [_shortened(_session(row)) for row in rows]

    def count(self, butler: str, state: str) -> int:
        rows = self.database.query(
            "SELECT count(*) AS count FROM sessions WHERE butler = ? AND state = ?", (butler, state)
        )
        return int(rows[0]["count"])

    def usage(self, *, since: float, span: float) -> list[Row]:
        """Sums over spans of `span` seconds starting at `since`; empty spans are left out."""
        return self.database.query(
            "SELECT CAST(max(created_at - ?, 0) / ? AS INTEGER) AS span, count(*) AS sessions,"
            " sum(state IN ('failed', 'interrupted')) AS failed,"
            " coalesce(sum(input_tokens), 0) AS input_tokens,"
            " coalesce(sum(output_tokens), 0) AS output_tokens, coalesce(sum(cost), 0.0) AS cost"
            " FROM sessions WHERE created_at >= ? GROUP BY span ORDER BY span",
            (since, span, since),
        )

    def load(self, session_id: str, *, butler: str | None = None) -> Session:
        """By id, or by a prefix that only one session has; only sessions of `butler`, if one is given."""
        rows = self.database.query(
            f"SELECT {', '.join(_FIELDS)} FROM sessions"
            " WHERE substr(id, 1, ?) = ? AND butler = coalesce(?, butler) ORDER BY number DESC LIMIT 2",
            (len(session_id), session_id, butler),
        )
        exact = [row for row in rows if row["id"] == session_id] or rows
        if not session_id or not exact:
            raise NotFound(f"No session {session_id}", hint="af sessions")
        if len(exact) > 1:
            raise UsageError(f"Several sessions start with {session_id}", hint="af sessions")
        session = _session(exact[0])
        if session.tool_calls is None:
            so_far = merge_calls((), served_calls(self.database.query, session.id))
            session = msgspec.structs.replace(session, tool_calls=so_far)
        return session


def _columns(session: Session) -> Mapping[str, Any]:
    """The columns to store; the prompt includes the context, as the runtime gets it."""
    calls = session.tool_calls
    stored = None if calls is None else json.dumps(calls, allow_nan=False)
    return {**msgspec.structs.asdict(session), "prompt": session.whole_prompt, "tool_calls": stored}


def _as_asked(session: Session) -> Session:
    """The session with its prompt as it was requested, without the context that is stored with it."""
    before = f"{session.context}\n\n" if session.context else ""
    return msgspec.structs.replace(session, prompt=session.prompt.removeprefix(before))


def _session(row: Row) -> Session:
    columns = dict(row)
    if isinstance(columns["tool_calls"], str):
        columns["tool_calls"] = json.loads(columns["tool_calls"], parse_constant=str)
    columns["success"] = None if columns["success"] is None else bool(columns["success"])
    columns["for_home"] = bool(columns["for_home"])
    return Session(**columns)


def _shortened(record: Session, limit: int = 200) -> Session:
    texts = {name: text for name in _TEXTS if (text := getattr(record, name)) is not None}
    lines = {name: " ".join(text.split()) for name, text in texts.items()}
    cut = {name: line if len(line) <= limit else line[: limit - 1] + "…" for name, line in lines.items()}
    return msgspec.structs.replace(record, **cut)
