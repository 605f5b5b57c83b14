"""What may have triggered a session, for its record."""

from __future__ import annotations

import re

from agent_farm.errors import UsageError

PLAIN_SOURCES = ("tick", "external", "trigger", "route")
SCHEDULE_PREFIX = "schedule:"
TASK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def _is_schedule(source: str) -> bool:
    name = source.removeprefix(SCHEDULE_PREFIX)
    return name != source and TASK_NAME.fullmatch(name) is not None


def require_trigger_source(source: str) -> None:
    if source in PLAIN_SOURCES or _is_schedule(source):
        return
    raise UsageError(
        f"{source!r} is not a trigger source",
        why=f"Valid: {', '.join(PLAIN_SOURCES)}, {SCHEDULE_PREFIX}<task-name>",
    )
