"""Schedules whose sessions run on another machine, over a restart of the server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from agent_farm.sessions.butlers import ScheduleEntry
from agent_farm.sessions.database import Database
from agent_farm.sessions.other_machines import NewElsewhere, SessionOrder
from agent_farm.sessions.records import session_create, session_place
from agent_farm.sessions.running_butler import RunningButler
from agent_farm.sessions.schedules import ScheduleStore
from agent_farm.sessions.session import Observer, Session
from tests.gitrepo import write_files
from tests.server.serving import serving
from tests.sessions.loop import in_loop
from tests.sessions.test_schedule_outcomes import LATER
from tests.sessions.test_scheduler import Clock
from tests.waiting import wait_until


@dataclass
class Big:
    """A machine as one server sees it; its sessions end when the test says so."""

    database: Database
    followed: dict[str, tuple[Session, asyncio.Future[Session]]] = field(default_factory=dict)

    async def run(self, session: Session, order: SessionOrder, observer: Observer) -> Session:
        await session_place(self.database, session.id, "big")
        return await self.go_on(replace(session, host="big", state="running"), observer)

    async def go_on(self, session: Session, observer: Observer) -> Session:
        end: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
        self.followed[session.id] = (session, end)
        return await end

    async def hold_again(self, sessions: list[Session]) -> None: ...

    def recorded(self, session: Session) -> None: ...

    def leave(self) -> None:
        for session, end in self.followed.values():
            if not end.done():
                end.set_result(session)

    def complete(self) -> None:
        for session, end in self.followed.values():
            if not end.done():
                end.set_result(replace(session, state="completed", success=True))


@dataclass
class Seen:
    """Makes each server's view of the machine, and keeps the newest."""

    big: Big | None = None

    def __call__(self, database: Database) -> NewElsewhere:
        big = self.big = Big(database)
        return lambda: big

    def complete(self) -> None:
        assert self.big
        self.big.complete()


def outcomes(running: RunningButler) -> list[str]:
    """The history's words, without what follows a comma."""
    return [fire.outcome.split(",")[0] for fire in running.schedules.fires("often")]


async def until(true: Callable[[], object], what: str) -> None:
    await asyncio.to_thread(wait_until, true, what=what)


@in_loop
async def test_it_runs_once_over_a_restart_and_its_end_is_in_the_history(repo: Path) -> None:
    write_files(repo, {"agent-farm.toml": '[sessions]\non = "big"\n'})
    clock, seen = Clock(time.time()), Seen()
    async with serving(repo, elsewhere=seen) as first:
        first.running.scheduler.clock = clock
        first.running.schedules.create(ScheduleEntry("often", "* * * * *", "x", "UTC"))
        clock.now += LATER
        assert await first.running.scheduler.tick() == ["often"]
        await until(lambda: seen.big and seen.big.followed, "the session there")
    async with serving(repo, elsewhere=seen) as second:
        running = second.running
        running.scheduler.clock = clock
        assert outcomes(running) == ["fired"]
        clock.now += LATER
        assert await running.scheduler.tick() == []  # it may look before it follows the session
        await second.butlers.go_on_elsewhere()
        clock.now += LATER
        assert await running.scheduler.tick() == []
        assert outcomes(running) == ["fired", "still running", "still running"]
        await until(lambda: seen.big and seen.big.followed, "the session there, followed again")
        seen.complete()
        await until(lambda: outcomes(running)[0] == "completed", "its end in the history")
        (session,) = second.sessions.find(source="schedule:often")
        assert session["state"] == "completed"
        clock.now += LATER
        assert await running.scheduler.tick() == ["often"]


@in_loop
async def test_the_end_of_a_run_by_hand_is_not_that_of_an_earlier_due_time(tmp_path: Path) -> None:
    database = Database(tmp_path / "butler.db")
    store = ScheduleStore(database, "health")
    store.create(ScheduleEntry("often", "* * * * *", "x", "UTC"))
    asked = Session(
        id="1", butler="health", prompt="x", runtime="demo", trigger_source="schedule:often", host="big"
    )
    assert store.claim("often", 60.0, "fired")
    fired = await session_create(database, asked)
    by_hand = await session_create(database, replace(asked, id="2"))
    other = await session_create(database, replace(asked, id="3", trigger_source="external"))
    assert store.due_of(fired) == ("often", 60.0)
    assert store.due_of(by_hand) is None
    assert store.due_of(other) is None
    store.note_outcome("often", 60.0, "completed")
    assert store.due_of(fired) is None
