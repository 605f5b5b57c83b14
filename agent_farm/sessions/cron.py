"""Cron expressions: when a schedule is due in its own time zone, daylight saving included."""

from __future__ import annotations

import os
from datetime import datetime, tzinfo

from agent_farm.errors import UsageError
from agent_farm.sessions.time_zone import machine_zone, named_zone

MOST_DUES = 1000
CATCH_UP_SECONDS = 3600
_FIELDS = 5


def require_cron(cron: str, timezone: str | None = None) -> None:
    if len(cron.split()) != _FIELDS:  # given six fields, cronsim would count seconds, which nothing here does
        raise _no_cron(cron, "Wrong number of fields")
    next_due(cron, timezone, 0.0)


def next_due(cron: str, timezone: str | None, after: float) -> float:
    """The first due time later than `after`, both in seconds since the epoch."""
    from cronsim import CronSim, CronSimError

    zone = _zone(timezone)
    try:
        dues = (due.timestamp() for due in CronSim(cron, datetime.fromtimestamp(after, zone)))
        return next(due for due in dues if due > after)  # of a repeated hour, cronsim begins with the first
    except (CronSimError, StopIteration) as error:
        raise _no_cron(cron, str(error) or "It is never due.") from error


def _no_cron(cron: str, why: str) -> UsageError:
    return UsageError(
        f"{cron!r} is not a cron expression",
        why=why,
        hint="five fields: minute hour day month weekday, as in '0 8 * * 1-5'",
    )


def last_due(cron: str, timezone: str | None, after: float, until: float) -> tuple[float | None, int]:
    """The newest due time in (after, until], and how many there were (at most MOST_DUES are counted)."""
    newest, count, at = None, 0, after
    while count < MOST_DUES:
        at = next_due(cron, timezone, at)
        if at > until:
            return newest, count
        newest, count = at, count + 1
    # After a long absence: look again from so near the end that even every minute fits.
    close = max(after, until - (MOST_DUES - 1) * 60.0)
    return (last_due(cron, timezone, close, until)[0] if close > at else newest), count


def last_moment(until: str | None, timezone: str | None) -> float | None:
    """The end of the day `until`, or the time it gives, in seconds since the epoch."""
    if until is None:
        return None
    try:
        moment = datetime.fromisoformat(until)
    except ValueError as error:
        raise UsageError(
            f"{until!r} is neither a day nor a time", hint="as in 2027-03-31 or 2027-03-31T18:00"
        ) from error
    if len(until) == len("2027-03-31"):
        moment = moment.replace(hour=23, minute=59, second=59)
    return (moment if moment.tzinfo else moment.replace(tzinfo=_zone(timezone))).timestamp()


def _zone(name: str | None) -> tzinfo:
    return named_zone(name) if name else machine_zone(os.environ)
