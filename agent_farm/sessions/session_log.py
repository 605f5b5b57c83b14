"""The records of the sessions, read, and put right where the process that wrote them died."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from agent_farm.errors import NotFound, TimedOut, UsageError
from agent_farm.sessions.database import Database, Row
from agent_farm.sessions.ownership import forget_owner, is_alive
from agent_farm.sessions.records import SERVED, SESSION_STATES, served_calls
from agent_farm.sessions.tool_calls import merge_calls

INTERRUPTED = "Interrupted: the process that ran it is gone"
_LOOK_SECONDS = 0.1
_OUR_OWN = ("number", "owner", "home", "stop_asked")
_TEXTS = ("prompt", "context", "output")
# of the texts no more than is shown, of the tool calls none: they can be megabytes
_SHORT = (
    "id, butler, parent, resumes, state, trigger_source, runtime, model, cwd, max_turns, trace_id,"
    " conversation_id, error, success, duration, input_tokens, output_tokens, cached_tokens, cost,"
    " created_at, started_at, ended_at, failure, json_array_length(tool_calls) AS tool_calls, "
    + ", ".join(f"substr({text}, 1, 1000) AS {text}" for text in _TEXTS)
)


@dataclass(frozen=True, slots=True)
class SessionLog:
    """The records, read; those whose process died are put right first."""

    # how long a session that is asked to stop may take to end, its processes included
    STOP_SECONDS: ClassVar[float] = 30.0

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
            f"SELECT {_SHORT} FROM sessions WHERE {' AND '.join(conditions)} ORDER BY number DESC LIMIT ?",
            (*values, limit or -1),
        )
        return [_short_json(row) for row in rows]

    def usage(self, *, since: float, span: float) -> list[dict[str, Any]]:
        """Sums over spans of `span` seconds from `since` on, those in which there was something."""
        rows = self.database.query(
            "SELECT CAST(max(created_at - ?, 0) / ? AS INTEGER) AS span, count(*) AS sessions,"
            " sum(state IN ('failed', 'interrupted')) AS failed,"
            " coalesce(sum(input_tokens), 0) AS input_tokens,"
            " coalesce(sum(output_tokens), 0) AS output_tokens, coalesce(sum(cost), 0.0) AS cost"
            " FROM sessions WHERE created_at >= ? GROUP BY span ORDER BY span",
            (since, span, since),
        )
        return [dict(row) for row in rows]

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
        record = session_json(exact[0])
        if record["tool_calls"] is None:
            record["tool_calls"] = self._served_so_far(record["id"])
        return record

    def home(self, session_id: str) -> str:
        """The name under which its conversation is kept."""
        rows = self.database.query("SELECT home FROM sessions WHERE id = ?", (session_id,))
        return str((rows[0]["home"] if rows else None) or session_id)

    def ask_to_stop(self, session_id: str, by: str = "af sessions stop") -> dict[str, Any]:
        """Have the process that runs it cancel it; its record as it is, the end still to come."""
        record = self.get(session_id)
        if record["ended_at"] is not None:
            raise UsageError(
                f"Session {record['id'][:8]} has ended already: {record['state']}",
                hint=f"af sessions {record['id'][:8]}",
            )
        with self.database.transaction() as connection:
            connection.execute(
                "UPDATE sessions SET stop_asked = ? WHERE id = ? AND ended_at IS NULL", (by, record["id"])
            )
        return record

    def stop(self, session_id: str, by: str = "af sessions stop") -> dict[str, Any]:
        """The same, and wait: the record once it has ended. Blocks."""
        id = self.ask_to_stop(session_id, by)["id"]
        deadline = time.monotonic() + self.STOP_SECONDS
        while (record := self.get(id))["ended_at"] is None:
            if time.monotonic() > deadline:
                raise TimedOut(
                    f"Session {id[:8]} has not ended within {self.STOP_SECONDS:g} s",
                    why="The process that runs it has been told, and does not answer.",
                    hint="af butler stop --now",
                )
            time.sleep(_LOOK_SECONDS)
        return record

    def _served_so_far(self, session_id: str) -> list[dict[str, Any]]:
        return merge_calls((), served_calls(self.database.query(SERVED, (session_id,))))


def session_json(row: Row) -> dict[str, Any]:
    record = {key: row[key] for key in row.keys() if key not in _OUR_OWN}  # noqa: SIM118
    record["success"] = None if row["success"] is None else bool(row["success"])
    record["tool_calls"] = json.loads(row["tool_calls"]) if row["tool_calls"] is not None else None
    return record


def _short_json(row: Row) -> dict[str, Any]:
    """A row of a list: texts as one line, cut at 200 characters, `tool_calls` as their number."""
    record = {key: row[key] for key in row.keys()}  # noqa: SIM118
    record["success"] = None if row["success"] is None else bool(row["success"])
    for key in _TEXTS:
        record[key] = _line(record[key])
    return record


def _line(text: str | None, limit: int = 200) -> str | None:
    if text is None:
        return None
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
