"""The stored schedules, from `butler.toml` and from tools, and which due times were claimed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from agent_farm.consent import ConsentRequest, not_agreed
from agent_farm.disk import file_lock
from agent_farm.errors import NotFound, UsageError, meant
from agent_farm.sessions.butler_file import ScheduleEntry, require_schedule
from agent_farm.sessions.butlers import Butler
from agent_farm.sessions.cron import last_moment, next_due
from agent_farm.sessions.database import Database, Row
from agent_farm.sessions.roster import FILE_NAME, roster_directory
from agent_farm.sessions.session import Session
from agent_farm.sessions.trigger_sources import SCHEDULE_PREFIX

Origin = Literal["file", "tool"]


class Schedule(ScheduleEntry, frozen=True, kw_only=True):
    """`looked_until`: due times up to then were fired or skipped."""

    enabled: bool
    origin: Origin
    looked_until: float

    @property
    def next_due(self) -> float | None:
        due = next_due(self.cron, self.timezone, self.looked_until)
        return due if self.enabled and not self.is_over(due) else None

    def is_over(self, due: float) -> bool:
        last = last_moment(self.until, self.timezone)
        return last is not None and due > last

    def directory(self, root: Path) -> Path | None:
        return schedule_directory(root, self)


class Fire(msgspec.Struct, frozen=True):
    """When it was due, when it was claimed, and what came of it."""

    due: float
    claimed_at: float
    outcome: str


@dataclass(frozen=True, slots=True)
class ScheduleStore:
    database: Database
    butler: str
    clock: Callable[[], float] = time.time

    def all(self) -> list[Schedule]:
        rows = self.database.query("SELECT * FROM schedules WHERE butler = ? ORDER BY name", (self.butler,))
        return [_schedule(row) for row in rows]

    def get(self, name: str) -> Schedule:
        known = {schedule.name: schedule for schedule in self.all()}
        if name not in known:
            raise NotFound(f"No schedule {name}", why=meant(name, known), hint="af schedule list")
        return known[name]

    def create(self, entry: ScheduleEntry) -> Schedule:
        require_schedule(entry)
        with self._changing():
            if any(schedule.name == entry.name for schedule in self.all()):
                raise UsageError(f"There is already a schedule {entry.name}", hint="af schedule list")
            self._write(entry, "tool", enabled=True)
            return self.get(entry.name)

    def update(self, name: str, *, enabled: bool | None = None, **changed: Any) -> Schedule:
        """Change what is given and not None. One that was off, or was due at other times, counts from now."""
        given = {key: value for key, value in changed.items() if value is not None}
        with self._changing():
            old = self.get(name)
            if old.origin == "file" and given:
                raise _from_file(name)
            entry = msgspec.structs.replace(old.entry, **given)
            require_schedule(entry)
            on = old.enabled if enabled is None else enabled
            afresh = entry.cron != old.cron or (on and not old.enabled)
            self._write(entry, old.origin, enabled=on, looked_until=None if afresh else old.looked_until)
            return self.get(name)

    def delete(self, name: str) -> None:
        with self._changing():
            if self.get(name).origin == "file":
                raise _from_file(name)
            self._forget(name)

    def take_from_file(self, entries: tuple[ScheduleEntry, ...]) -> None:
        """Store the schedules of the file as in `entries`; those from tools are not touched.

        Writes only if something differs, so that looking at schedules changes nothing.
        """
        for entry in entries:
            require_schedule(entry)
        if self._is_so(entries):
            return
        with self._changing():
            known = {schedule.name: schedule for schedule in self.all()}
            for entry in entries:
                old = known.pop(entry.name, None)
                same = old is not None and (old.cron, old.timezone) == (entry.cron, entry.timezone)
                enabled = old.enabled if old else True
                self._write(
                    entry, "file", enabled=enabled, looked_until=old.looked_until if old and same else None
                )
            for old in known.values():
                if old.origin == "file":
                    self._forget(old.name)

    def _is_so(self, entries: tuple[ScheduleEntry, ...]) -> bool:
        known = {schedule.name: schedule for schedule in self.all()}
        from_file = {schedule.name for schedule in known.values() if schedule.origin == "file"}
        return from_file == {entry.name for entry in entries} and all(
            known[entry.name].entry == entry for entry in entries
        )

    def _changing(self) -> AbstractContextManager[Any]:
        """Keeps other processes and threads from changing schedules between a read and a write."""
        return file_lock(self.database.path.parent / "locks" / f"schedules-{self.butler}.lock", wait=20)

    def claim(self, name: str, due: float, outcome: str) -> bool:
        """Whether this process, and no other, acts on this due time, which then counts as examined."""
        with self.database.transaction() as connection:
            claimed = connection.execute(
                "INSERT OR IGNORE INTO fires VALUES (?, ?, ?, ?, ?)",
                (self.butler, name, due, self.clock(), outcome),
            ).rowcount
            connection.execute(
                "UPDATE schedules SET looked_until = max(looked_until, ?) WHERE butler = ? AND name = ?",
                (due, self.butler, name),
            )
        return claimed == 1

    def note_outcome(self, name: str, due: float, outcome: str) -> None:
        """Record what came of a claimed due time."""
        self.database.write(
            "UPDATE fires SET outcome = ? WHERE butler = ? AND schedule = ? AND due = ?",
            (outcome, self.butler, name, due),
        )

    def due_of(self, session: Session) -> tuple[str, float] | None:
        """The schedule and due time that fired the session, while its outcome is not noted.

        That is the newest due time claimed before it, unless that one had a session before this one.
        """
        source, created = session.trigger_source, session.created_at
        rows = self.database.query(
            "SELECT schedule, due FROM fires WHERE butler = ? AND ? || schedule = ? AND outcome = 'fired'"
            " AND claimed_at <= ? AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.butler = fires.butler"
            " AND trigger_source = ? AND created_at >= claimed_at AND created_at < ?)"
            " ORDER BY claimed_at DESC LIMIT 1",
            (self.butler, SCHEDULE_PREFIX, source, created, source, created),
        )
        return (rows[0]["schedule"], rows[0]["due"]) if rows else None

    def look_from(self, name: str, moment: float) -> None:
        """Let times after `moment` fire again, after a clock that had been past it was set back."""
        self.database.write(
            "UPDATE schedules SET looked_until = min(looked_until, ?) WHERE butler = ? AND name = ?",
            (moment, self.butler, name),
        )

    def fires(self, name: str) -> list[Fire]:
        rows = self.database.query(
            "SELECT due, claimed_at, outcome FROM fires WHERE butler = ? AND schedule = ? ORDER BY due",
            (self.butler, name),
        )
        return [Fire(**dict(row)) for row in rows]

    def _write(
        self, entry: ScheduleEntry, origin: Origin, *, enabled: bool, looked_until: float | None = None
    ) -> None:
        now = self.clock()
        told = {**msgspec.structs.asdict(entry), "enabled": int(enabled), "origin": origin}
        told |= {"looked_until": now if looked_until is None else looked_until}
        row = {"butler": self.butler, "created_at": now, **told}
        del told["name"]
        self.database.write(
            f"INSERT INTO schedules ({', '.join(row)}) VALUES ({', '.join(f':{name}' for name in row)})"
            " ON CONFLICT (butler, name) DO UPDATE SET "
            + ", ".join(f"{name} = excluded.{name}" for name in told),
            row,
        )

    def _forget(self, name: str) -> None:
        self.database.write("DELETE FROM schedules WHERE butler = ? AND name = ?", (self.butler, name))


def schedule_directory(root: Path, entry: ScheduleEntry) -> Path | None:
    """Where its sessions run; a relative `cwd` must be inside the checkout."""
    if entry.cwd is None:
        return None
    place = (root / entry.cwd).resolve()
    if not Path(entry.cwd).is_absolute() and not place.is_relative_to(root.resolve()):
        raise UsageError(f"Schedule {entry.name}: cwd {entry.cwd} leads out of {root}")
    if not place.is_dir():
        raise UsageError(f"Schedule {entry.name}: there is no directory {place}")
    return place


def _schedule(row: Row) -> Schedule:
    known = {name: row[name] for name in Schedule.__struct_fields__}
    return Schedule(**{**known, "enabled": bool(row["enabled"])})


def _from_file(name: str) -> UsageError:
    return UsageError(
        f"Schedule {name} comes from butler.toml", why="Change it there; it can be enabled or disabled."
    )


def schedule_request(root: Path, butler: str, schedule: ScheduleEntry) -> ConsentRequest:
    """A schedule in a butler.toml, to be approved before it fires."""
    zone = f" ({schedule.timezone})" if schedule.timezone else ""
    place = f" in {schedule.cwd}" if schedule.cwd else ""
    file = roster_directory(root) / butler / FILE_NAME
    origin = f"{file.relative_to(root)} schedule {schedule.name}"
    return ConsentRequest(origin, f"{schedule.cron}{zone}{place}: {schedule.prompt}")


def waiting_requests(root: Path, butler: Butler) -> list[ConsentRequest]:
    """What in the butler's own directory is not approved."""
    schedules = [schedule_request(root, butler.name, entry) for entry in butler.schedules]
    return not_agreed(root, [*butler.requests, *schedules])


def may_fire(root: Path, butler: str, schedule: Schedule) -> bool:
    """A schedule made by a person or a tool needs no further approval."""
    return schedule.origin == "tool" or not not_agreed(root, [schedule_request(root, butler, schedule)])
