"""What a repository's butlers may do is agreed to by its user: no tool, schedule or session agrees to it."""

from __future__ import annotations

from pathlib import Path

from agent_farm.consent import Request, not_agreed
from agent_farm.sessions.butlers import FILE_NAME, Butler, ScheduleEntry, roster_directory
from agent_farm.sessions.schedules import Schedule


def schedule_request(root: Path, butler: str, schedule: ScheduleEntry) -> Request:
    """A schedule of a butler.toml, to be agreed to before it fires."""
    zone = f" ({schedule.timezone})" if schedule.timezone else ""
    place = f" in {schedule.cwd}" if schedule.cwd else ""
    file = roster_directory(root) / butler / FILE_NAME
    origin = f"{file.relative_to(root)} schedule {schedule.name}"
    return Request(origin, f"{schedule.cron}{zone}{place}: {schedule.prompt}")


def waiting_requests(root: Path, butler: Butler) -> list[Request]:
    """What of the butler's own directory nobody has agreed to."""
    schedules = [schedule_request(root, butler.name, entry) for entry in butler.schedules]
    return not_agreed(root, [*butler.requests, *schedules])


def may_fire(root: Path, butler: str, schedule: Schedule) -> bool:
    """One that a person or a tool made was agreed to by that."""
    return schedule.origin == "tool" or not not_agreed(root, [schedule_request(root, butler, schedule)])
