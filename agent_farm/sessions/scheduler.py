"""Fires each due schedule once, however many servers look; a missed time is made up for once, or skipped."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from agent_farm.consent import HINT
from agent_farm.errors import AgentFarmError
from agent_farm.sessions.cron import last_due, last_moment
from agent_farm.sessions.failures import log_failure, reason_of
from agent_farm.sessions.schedules import Schedule, ScheduleStore
from agent_farm.sessions.session import SpawnerResult

LONGEST_SLEEP = 20.0
FINISH_SECONDS = 5.0

Fire = Callable[[Schedule], Awaitable[SpawnerResult]]

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Scheduler:
    """`fire(schedule)` runs one session. A schedule never runs twice at the same time.

    `refresh` updates the store before it is read; `may_fire` says whether the user has approved; `is_unended`
    whether a session of it is on record that has not ended, for another machine may run it since an earlier
    server. It blocks.
    """

    store: ScheduleStore
    fire: Fire
    clock: Callable[[], float] = time.time
    refresh: Callable[[], Awaitable[None]] | None = None
    may_fire: Callable[[Schedule], bool] = lambda schedule: True
    is_unended: Callable[[Schedule], bool] = lambda schedule: False
    _running: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    async def tick(self) -> list[str]:
        """Fire what is due now; returns the names of the schedules that this call fired."""
        if self.refresh:
            await self.refresh()
        schedules = await self.store.database.run(self.store.all)
        fired = []
        for schedule in schedules:
            try:
                if schedule.enabled and await self._look(schedule):
                    fired.append(schedule.name)
            except Exception as error:  # the remaining ones are still examined
                log_failure(_log, f"Schedule {schedule.name}", error)
        return fired

    async def finish(self) -> None:
        """Wait until the end of everything fired is recorded; the spawner drains the sessions themselves."""
        if left := [task for task in self._running.values() if not task.done()]:
            await asyncio.wait(left, timeout=FINISH_SECONDS)

    async def _look(self, schedule: Schedule) -> bool:
        now = self.clock()
        if schedule.looked_until > now:  # the clock was ahead; what it fired then stays claimed
            await self.store.database.run(self.store.look_from, schedule.name, now)
            return False
        until = last_moment(schedule.until, schedule.timezone)
        due, count = last_due(
            schedule.cron, schedule.timezone, schedule.looked_until, now if until is None else min(now, until)
        )
        if due is None:
            return False
        if count > 1:
            _log.warning("Schedule %s missed %d due times", schedule.name, count - 1)
        outcome = await self._outcome(schedule, now - due)
        claimed = await self.store.database.run(self.store.claim, schedule.name, due, outcome)
        if not claimed:
            return False
        if outcome != "fired":
            _log.warning("Schedule %s was not fired: %s", schedule.name, outcome)
            return False
        self.follow(schedule.name, due, partial(self.fire, schedule))
        return True

    async def _outcome(self, schedule: Schedule, late: float) -> str:
        if schedule.late and late > schedule.late:
            return f"missed by {late:.0f} s"
        if not self.may_fire(schedule):
            return f"not agreed to: {HINT}"
        running = self._running.get(schedule.name)
        runs = running is not None and not running.done()
        if runs or await self.store.database.run(self.is_unended, schedule):
            return "still running"
        return "fired"

    def follow(self, name: str, due: float, run: Callable[[], Awaitable[SpawnerResult]]) -> None:
        """Note in the history what comes of a due time that was claimed."""
        self._running[name] = asyncio.create_task(self._follow(name, due, run))

    async def _follow(self, name: str, due: float, run: Callable[[], Awaitable[SpawnerResult]]) -> None:
        try:
            result = await run()
            if result.state == "running":  # elsewhere; the next server follows it
                return
            outcome = _outcome_of(result)
        except Exception as error:
            log_failure(_log, f"Schedule {name}", error)
            outcome = f"not started: {reason_of(error)}"
        if not outcome.startswith("completed"):
            _log.warning("Schedule %s: %s", name, outcome)
        try:
            await self.store.database.run(self.store.note_outcome, name, due, outcome)
        except AgentFarmError as error:
            log_failure(_log, f"The history of schedule {name}", error)


def next_look(now: float) -> float:
    """Seconds until the next look, which is shortly after each full minute, when schedules are due."""
    return min(LONGEST_SLEEP, 60.0 - now % 60.0 + 0.05)


def _outcome_of(result: SpawnerResult) -> str:
    session = f", session {result.session_id[:8]}" if result.session_id else ""
    return f"completed{session}" if result.success else f"failed{session}: {result.error}"
