"""Who may have triggered a session, for the audit in its record."""

from __future__ import annotations

import re

from agent_farm.errors import UsageError

PLAIN_SOURCES = ("tick", "external", "trigger", "route")
# What a caller may say for itself; "trigger" is found out, a schedule is named by `af schedule run`.
CHOSEN_SOURCES = ("external", "tick", "route")
SCHEDULE_PREFIX = "schedule:"
TASK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def is_callers_source(source: object) -> bool:
    """Whether a request may name it; what `af run` finds out of itself is among them."""
    return source in (*CHOSEN_SOURCES, "trigger") or (isinstance(source, str) and _is_schedule(source))


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
