"""When schedules fire: once each, however many servers look, and what was missed as documented."""

from __future__ import annotations

import asyncio
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from agent_farm.butler.cron import last_due, next_due, require_cron
from agent_farm.butler.database import Database
from agent_farm.butler.identity import ScheduleEntry
from agent_farm.butler.result import SpawnerResult
from agent_farm.butler.scheduler import Scheduler
from agent_farm.butler.schedules import ScheduleStore
from agent_farm.errors import NotFound, UsageError
from tests.butler.loop import in_loop

BERLIN = "Europe/Berlin"
NOON = datetime(2026, 6, 1, 12, 0, tzinfo=ZoneInfo("UTC")).timestamp()


class Clock:
    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Bell:
    """Keeps what was fired; a prompt in `slow` takes until `go`."""

    def __init__(self) -> None:
        self.rung: list[tuple[str, str]] = []
        self.slow = False
        self.go = asyncio.Event()

    async def __call__(self, prompt: str, source: str) -> SpawnerResult:
        self.rung.append((prompt, source))
        if self.slow:
            await self.go.wait()
        return SpawnerResult()


def make(tmp_path: Path, clock: Clock, bell: Bell) -> Scheduler:
    store = ScheduleStore(Database(tmp_path / "butler.db"), "health", clock)
    return Scheduler(store, bell, clock)


def berlin(*parts: int) -> float:
    return datetime(*parts, tzinfo=ZoneInfo(BERLIN)).timestamp()  # type: ignore[arg-type]


@in_loop
async def test_a_schedule_fires_under_its_name_when_it_is_due(tmp_path: Path) -> None:
    clock, bell = Clock(), Bell()
    scheduler = make(tmp_path, clock, bell)
    scheduler.store.create(ScheduleEntry("daily_digest", "5 12 * * *", "Write the digest", "UTC"))
    assert await scheduler.tick() == []
    clock.now += 301
    assert await scheduler.tick() == ["daily_digest"]
    assert await scheduler.tick() == []
    await asyncio.sleep(0)
    assert bell.rung == [("Write the digest", "schedule:daily_digest")]
    clock.now += 86400
    assert await scheduler.tick() == ["daily_digest"]


@in_loop
async def test_two_servers_fire_it_once(tmp_path: Path) -> None:
    clock, bell = Clock(), Bell()
    servers = [make(tmp_path, clock, bell) for _ in range(4)]
    servers[0].store.create(ScheduleEntry("often", "* * * * *", "x", "UTC"))
    for _ in range(5):
        clock.now += 60
        fired = await asyncio.gather(*(server.tick() for server in servers))
        assert sorted(map(len, fired)) == [0, 0, 0, 1]
    await asyncio.sleep(0)
    assert len(bell.rung) == 5


@in_loop
async def test_what_was_missed_is_made_up_once_within_the_hour(tmp_path: Path) -> None:
    clock, bell = Clock(), Bell()
    scheduler = make(tmp_path, clock, bell)
    scheduler.store.create(ScheduleEntry("often", "*/10 * * * *", "x", "UTC"))
    clock.now += 6 * 3600
    assert await scheduler.tick() == ["often"]
    assert await scheduler.tick() == []


@in_loop
async def test_what_is_more_than_an_hour_late_is_passed_over_and_said_so(tmp_path: Path) -> None:
    clock, bell = Clock(), Bell()
    scheduler = make(tmp_path, clock, bell)
    scheduler.store.create(ScheduleEntry("daily", "0 13 * * *", "x", "UTC"))
    clock.now += 3 * 3600
    assert await scheduler.tick() == []
    assert [fire["outcome"] for fire in scheduler.store.fires("daily")] == ["missed by 7200 s"]
    clock.now += 22 * 3600
    assert await scheduler.tick() == ["daily"]


@in_loop
async def test_a_schedule_never_runs_beside_itself(tmp_path: Path) -> None:
    clock, bell = Clock(), Bell()
    bell.slow = True
    scheduler = make(tmp_path, clock, bell)
    scheduler.store.create(ScheduleEntry("often", "* * * * *", "x", "UTC"))
    clock.now += 60
    assert await scheduler.tick() == ["often"]
    await asyncio.sleep(0)
    assert [fire["outcome"] for fire in scheduler.store.fires("often")] == ["fired"]
    clock.now += 60
    assert await scheduler.tick() == []
    bell.go.set()
    await asyncio.sleep(0.01)
    clock.now += 60
    assert await scheduler.tick() == ["often"]
    await scheduler.finish()
    outcomes = [fire["outcome"] for fire in scheduler.store.fires("often")]
    assert outcomes == ["completed", "still running", "completed"]


@in_loop
async def test_a_disabled_schedule_waits_and_counts_from_when_it_is_enabled(tmp_path: Path) -> None:
    clock, bell = Clock(), Bell()
    scheduler = make(tmp_path, clock, bell)
    scheduler.store.create(ScheduleEntry("often", "* * * * *", "x", "UTC"))
    scheduler.store.update("often", enabled=False)
    clock.now += 600
    assert await scheduler.tick() == []
    scheduler.store.update("often", enabled=True)
    assert await scheduler.tick() == []
    clock.now += 60
    assert await scheduler.tick() == ["often"]


def test_daylight_saving_fires_once_a_day() -> None:
    """02:30 is skipped in March and comes twice in October."""
    assert next_due("30 2 * * *", BERLIN, berlin(2026, 3, 28, 12)) == berlin(2026, 3, 29, 3)
    first = next_due("30 2 * * *", BERLIN, berlin(2026, 10, 24, 12))
    assert first == datetime(2026, 10, 25, 2, 30, fold=0, tzinfo=ZoneInfo(BERLIN)).timestamp()
    assert next_due("30 2 * * *", BERLIN, first) == berlin(2026, 10, 26, 2, 30)
    half_hours = [berlin(2026, 10, 25, 1, 45)]
    for _ in range(4):
        half_hours.append(next_due("*/30 * * * *", BERLIN, half_hours[-1]))
    assert [b - a for a, b in pairwise(half_hours[1:])] == [1800.0] * 3


def test_a_minutely_schedule_after_a_year_is_found_at_once() -> None:
    newest, count = last_due("* * * * *", "UTC", NOON - 365 * 86400, NOON)
    assert newest == NOON
    assert count == 1000


@pytest.mark.parametrize("cron", ["", "* * * *", "60 * * * *", "every day", "0 0 30 2 *"])
def test_what_is_no_cron_expression_is_refused(cron: str) -> None:
    with pytest.raises(UsageError, match="not a cron expression"):
        require_cron(cron)


def test_what_is_no_time_zone_is_refused() -> None:
    for name in ("Nowhere/City", "../../etc/passwd"):
        with pytest.raises(UsageError, match="not a time zone"):
            require_cron("* * * * *", name)


def test_the_file_rules_its_own_schedules_and_leaves_the_others(tmp_path: Path) -> None:
    clock = Clock()
    store = ScheduleStore(Database(tmp_path / "butler.db"), "health", clock)
    store.create(ScheduleEntry("mine", "0 1 * * *", "x"))
    store.take_from_file((ScheduleEntry("a", "0 1 * * *", "x"), ScheduleEntry("b", "0 1 * * *", "x")))
    store.update("b", enabled=False)
    clock.now += 3600
    store.take_from_file((ScheduleEntry("a", "0 2 * * *", "y"), ScheduleEntry("b", "0 1 * * *", "z")))
    found = {schedule.name: schedule for schedule in store.all()}
    assert (found["a"].cron, found["a"].prompt, found["a"].looked_until) == ("0 2 * * *", "y", clock.now)
    assert (found["b"].enabled, found["b"].prompt, found["b"].looked_until) == (False, "z", NOON)
    store.take_from_file(())
    assert [schedule.name for schedule in store.all()] == ["mine"]
    store.take_from_file((ScheduleEntry("a", "0 2 * * *", "y"),))
    for change in (lambda: store.delete("a"), lambda: store.update("a", cron="* * * * *")):
        with pytest.raises(UsageError, match=r"butler\.toml"):
            change()
    store.delete("mine")
    with pytest.raises(NotFound, match="No schedule mine"):
        store.delete("mine")
    with pytest.raises(UsageError, match="already"):
        store.create(ScheduleEntry("a", "0 2 * * *", "y"))
