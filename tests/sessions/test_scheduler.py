"""When schedules fire: once each, however many servers look, and what was missed as documented."""

from __future__ import annotations

import asyncio
import threading
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from agent_farm.errors import NotFound, UsageError
from agent_farm.sessions.butlers import ScheduleEntry
from agent_farm.sessions.cron import last_due, next_due, require_cron
from agent_farm.sessions.database import Database
from agent_farm.sessions.scheduler import Scheduler
from agent_farm.sessions.schedules import Schedule, ScheduleStore
from agent_farm.sessions.session import SpawnerResult
from agent_farm.sessions.trigger_sources import SCHEDULE_PREFIX
from tests.sessions.loop import in_loop
from tests.waiting import wait_until

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

    async def __call__(self, schedule: Schedule) -> SpawnerResult:
        self.rung.append((schedule.prompt, SCHEDULE_PREFIX + schedule.name))
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
    await scheduler.finish()
    assert bell.rung == [("Write the digest", "schedule:daily_digest")]
    clock.now += 86400
    assert await scheduler.tick() == ["daily_digest"]


@in_loop
async def test_a_clock_that_was_years_ahead_silences_no_schedule(tmp_path: Path) -> None:
    clock, bell = Clock(), Bell()
    scheduler = make(tmp_path, clock, bell)
    scheduler.store.create(ScheduleEntry("often", "*/10 * * * *", "x", "UTC"))
    clock.now += 600
    assert await scheduler.tick() == ["often"]
    await scheduler.finish()
    right = clock.now
    clock.now += 9 * 365 * 86400
    assert await scheduler.tick() == ["often"]
    await scheduler.finish()
    clock.now = right + 1
    assert await scheduler.tick() == []
    clock.now = right + 600
    assert await scheduler.tick() == ["often"]


@in_loop
async def test_an_hour_that_the_clock_repeats_fires_nothing_twice(tmp_path: Path) -> None:
    clock, bell = Clock(), Bell()
    scheduler = make(tmp_path, clock, bell)
    scheduler.store.create(ScheduleEntry("often", "*/10 * * * *", "x", "UTC"))
    for _ in range(6):
        clock.now += 600
        assert await scheduler.tick() == ["often"]
        await scheduler.finish()
    clock.now -= 3600
    for _ in range(6):
        assert await scheduler.tick() == []
        clock.now += 600
    assert await scheduler.tick() == []
    clock.now += 600
    assert await scheduler.tick() == ["often"]


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
    assert [fire.outcome for fire in scheduler.store.fires("daily")] == ["missed by 7200 s"]
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
    assert [fire.outcome for fire in scheduler.store.fires("often")] == ["fired"]
    clock.now += 60
    assert await scheduler.tick() == []
    bell.go.set()
    ended = lambda: scheduler.store.fires("often")[0].outcome == "completed"  # noqa: E731
    await asyncio.to_thread(wait_until, ended, what="the end of the first")
    clock.now += 60
    assert await scheduler.tick() == ["often"]
    await scheduler.finish()
    outcomes = [fire.outcome for fire in scheduler.store.fires("often")]
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
    in_second_pass = datetime(2026, 10, 25, 2, 5, fold=1, tzinfo=ZoneInfo(BERLIN)).timestamp()
    assert next_due("30 2 * * *", BERLIN, in_second_pass) == berlin(2026, 10, 26, 2, 30)
    half_hours = [berlin(2026, 10, 25, 1, 45)]
    for _ in range(4):
        half_hours.append(next_due("*/30 * * * *", BERLIN, half_hours[-1]))
    assert [b - a for a, b in pairwise(half_hours[1:])] == [1800.0] * 3


def test_a_minutely_schedule_after_a_year_is_found_at_once() -> None:
    newest, count = last_due("* * * * *", "UTC", NOON - 365 * 86400, NOON)
    assert newest == NOON
    assert count == 1000


@pytest.mark.parametrize("cron", ["", "* * * *", "60 * * * *", "every day", "0 0 30 2 *", "* * * * * *"])
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


@in_loop
async def test_how_late_is_too_late_is_the_schedules_to_say(tmp_path: Path) -> None:
    clock, bell = Clock(), Bell()
    scheduler = make(tmp_path, clock, bell)
    for name, late in (("strict", 60.0), ("half_day", 43200.0), ("always", 0.0)):
        scheduler.store.create(ScheduleEntry(name, "30 12 * * *", name, "UTC", late=late))
    clock.now += 1800 + 7200  # a laptop that was closed for two hours
    assert sorted(await scheduler.tick()) == ["always", "half_day"]
    (missed,) = scheduler.store.fires("strict")
    assert missed.outcome == "missed by 7200 s"
    clock.now += 10 * 86400 + 15 * 3600
    assert await scheduler.tick() == ["always"]


@in_loop
async def test_after_its_last_day_a_schedule_is_due_no_more(tmp_path: Path) -> None:
    clock, bell = Clock(), Bell()
    scheduler = make(tmp_path, clock, bell)
    entry = ScheduleEntry("brief", "30 12 * * *", "x", "UTC", late=0, until="2026-06-02")
    assert scheduler.store.create(entry).next_due is not None
    clock.now += 10 * 86400
    assert await scheduler.tick() == ["brief"]  # once, for what was due until then
    assert [fire.due for fire in scheduler.store.fires("brief")] == [NOON + 86400 + 1800]
    assert await scheduler.tick() == []
    assert scheduler.store.get("brief").next_due is None
    with pytest.raises(UsageError, match="neither a day nor a time"):
        scheduler.store.create(ScheduleEntry("never", "* * * * *", "x", until="soon"))


@in_loop
async def test_one_that_cannot_be_looked_at_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, bell = Clock(), Bell()
    scheduler = make(tmp_path, clock, bell)
    for name in ("a_broken", "b_whole"):
        scheduler.store.create(ScheduleEntry(name, "* * * * *", name, "UTC"))
    claim = ScheduleStore.claim

    def breaking(self: ScheduleStore, name: str, due: float, outcome: str) -> bool:
        if name == "a_broken":
            raise RuntimeError("no disk")
        return claim(self, name, due, outcome)

    monkeypatch.setattr(ScheduleStore, "claim", breaking)
    clock.now += 60
    assert await scheduler.tick() == ["b_whole"]


def test_reading_schedules_writes_nothing_and_loses_no_click(tmp_path: Path) -> None:
    entries = tuple(ScheduleEntry(f"s{number}", "0 8 * * *", "x", "UTC") for number in range(3))
    store = ScheduleStore(Database(tmp_path / "butler.db"), "health")
    store.take_from_file(entries)
    before = store.database.query("SELECT total_changes() AS count")[0]["count"]
    store.take_from_file(entries)
    assert store.database.query("SELECT total_changes() AS count")[0]["count"] == before
    end = threading.Event()

    def read() -> None:
        reader = ScheduleStore(Database(tmp_path / "butler.db"), "health")
        number = 0
        while not end.is_set():  # the file changes all the while, so that there is something to write
            number += 1
            reader.take_from_file((*entries, ScheduleEntry("extra", "0 9 * * *", str(number), "UTC")))
        reader.database.close()

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for click in range(20):
            store.update("s1", enabled=bool(click % 2))
            assert store.get("s1").enabled == bool(click % 2)
    finally:
        end.set()
        for reader in readers:
            reader.join()


def test_a_place_lies_in_the_checkout_or_is_named_whole(tmp_path: Path) -> None:
    store = ScheduleStore(Database(tmp_path / "butler.db"), "health")
    (tmp_path / "root" / "docs").mkdir(parents=True)
    (tmp_path / "root" / "link").symlink_to(tmp_path)
    places = {"in": "docs", "whole": str(tmp_path), "gone": "none", "out": "../", "link": "link", "own": None}
    made = {
        name: store.create(ScheduleEntry(name, "0 8 * * *", "x", cwd=cwd)) for name, cwd in places.items()
    }
    root = tmp_path / "root"
    assert made["in"].directory(root) == root / "docs"
    assert made["whole"].directory(root) == tmp_path
    assert made["own"].directory(root) is None
    for name in ("gone", "out", "link"):
        with pytest.raises(UsageError):
            made[name].directory(root)
