"""How long the records of sessions are kept, and what is deleted with them."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent_farm.clock_jumps import note_time, require_steady_clock
from agent_farm.paths import FarmPaths
from agent_farm.sessions.records import SessionLog
from agent_farm.settings import Settings

DAY_SECONDS = 86400.0
_AT_ONCE = 500  # so that other processes can write in between


@dataclass(frozen=True, slots=True)
class Limits:
    """`age` in seconds since the end, `number` of sessions; None means no limit."""

    age: float | None = None
    number: int | None = None

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        days, number = settings.number("sessions.keep_days"), settings.number("sessions.keep_number")
        return cls(days * DAY_SECONDS if days else None, number or None)


def prune_sessions(
    log: SessionLog, limits: Limits, *, asked: bool = True, butler: str | None = None, dry_run: bool = False
) -> list[str]:
    """Returns the ids of the sessions removed; a session that has not ended is never removed.

    `asked` means by somebody who can say whether the clock is right.
    """
    paths = FarmPaths(log.database.path.parents[1])
    if limits.age is None:
        note_time(paths)
    elif limits.age:
        require_steady_clock(paths, asked=asked)
    before = -1.0 if limits.age is None else time.time() - limits.age
    most = 1 << 62 if limits.number is None else limits.number
    rows = log.database.query(
        "SELECT id, coalesce(home, id) AS home FROM ("
        " SELECT *, row_number() OVER (PARTITION BY butler ORDER BY number DESC) AS place FROM sessions"
        " WHERE butler = coalesce(?, butler)"
        ") WHERE ended_at IS NOT NULL AND NOT for_home AND (ended_at < ? OR place > ?) ORDER BY number",
        (butler, before, most),
    )
    ids = [row["id"] for row in rows]
    if not dry_run:
        for begin in range(0, len(ids), _AT_ONCE):
            _delete(log, ids[begin : begin + _AT_ONCE])
        _delete_fires(log, butler, before, most)
        _forget_conversations(log, {row["home"] for row in rows})
    return ids


def conversation_home(state: Path, name: str) -> Path:
    """Where a runtime keeps a conversation that `af run --resume` can continue."""
    return state / "conversations" / name


def _delete(log: SessionLog, ids: list[str]) -> None:
    with log.database.transaction() as connection:
        for table, column in (("sessions", "id"), ("served_calls", "caller"), ("episodes", "session_id")):
            marks = ", ".join("?" * len(ids))
            connection.execute(f"DELETE FROM {table} WHERE {column} IN ({marks})", ids)


def _delete_fires(log: SessionLog, butler: str | None, before: float, most: int) -> None:
    """Delete the history of due times that is as old as the removed sessions, or beyond the number kept."""
    log.database.write(
        "DELETE FROM fires WHERE rowid IN (SELECT rowid FROM ("
        " SELECT rowid, butler, due,"
        " row_number() OVER (PARTITION BY butler, schedule ORDER BY due DESC) AS place FROM fires"
        ") WHERE butler = coalesce(?, butler) AND (due < ? OR place > ?))",
        (butler, before, most),
    )


def _forget_conversations(log: SessionLog, homes: set[str]) -> None:
    """Delete conversations that no remaining session could continue."""
    for home in homes:
        left = log.database.query("SELECT 1 FROM sessions WHERE coalesce(home, id) = ? LIMIT 1", (home,))
        if not left:
            with suppress(OSError):
                shutil.rmtree(conversation_home(log.database.path.parent, home))
