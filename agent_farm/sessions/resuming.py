"""Going on with the conversation of a session that has ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent_farm.errors import UsageError
from agent_farm.sessions.order import RunOptions
from agent_farm.sessions.session_log import SessionLog


def resumed_options(
    log: SessionLog, id: str, butler: str, runtime: str | None, options: RunOptions | None
) -> RunOptions:
    """`options` as they have to be for its runtime to find the conversation: it looks by the place."""
    given, record = options or RunOptions(), log.get(id, butler=butler)
    _require_conversation(record)
    if runtime not in (None, record["runtime"]):
        raise UsageError(
            f"Session {record['id'][:8]} ran on {record['runtime']}, not on {runtime}",
            why="A conversation goes on with the runtime that has it.",
        )
    place = Path(record["cwd"])
    if given.cwd not in (None, place):
        raise UsageError(
            f"Session {record['id'][:8]} ran in {place}",
            why="Its conversation goes on there: leave out --cwd.",
        )
    resumed = {**record, "home": log.home(record["id"])}
    return replace(given, cwd=place, model=given.model or record["model"], resumed=resumed)


def _require_conversation(record: Mapping[str, Any]) -> None:
    short = record["id"][:8]
    if record["ended_at"] is None:
        raise UsageError(
            f"Session {short} is still {record['state']}",
            why="Its conversation can go on when it has ended.",
            hint=f"af sessions --follow {short}",
        )
    if not record["conversation_id"]:
        raise UsageError(
            f"Session {short} has no conversation",
            why=f"It ended as {record['state']} before {record['runtime']} had begun one.",
            hint=f"af sessions {short}",
        )
