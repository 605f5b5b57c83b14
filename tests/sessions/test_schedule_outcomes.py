"""What a schedule fired is on record and in its history as it truly ended, started or not."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from agent_farm.sessions.butlers import ScheduleEntry
from agent_farm.sessions.database import Database
from agent_farm.sessions.running_butler import RunningButler
from agent_farm.sessions.scheduler import Scheduler
from agent_farm.sessions.schedules import Schedule, ScheduleStore
from agent_farm.sessions.session import SessionRequest, SpawnerResult
from tests.conftest import Af
from tests.consenting import agree_to_all
from tests.gitrepo import commit_files, write_files
from tests.server.serving import Served, serving
from tests.sessions.loop import in_loop
from tests.sessions.test_scheduler import Clock
from tests.waiting import wait_until

LATER = 120.0  # seconds: a minute ends in them, whenever they begin
DEMO = '[butler]\nruntime = "demo"\n'


async def fired(served: Served, prompt: str = "[[say:x]]") -> None:
    """One schedule, due now, fired and at its end."""
    clock = served.running.scheduler.clock = Clock(time.time())
    served.running.schedules.create(ScheduleEntry("often", "* * * * *", prompt, "UTC"))
    clock.now += LATER
    await looked(served.running, 1)


async def looked(running: RunningButler, times: int) -> None:
    """Until so many fires have their outcome; the server looks by itself, too, and may be first."""
    await running.scheduler.tick()

    def told() -> bool:
        outcomes = [fire.outcome for fire in running.schedules.fires("often")]
        return len(outcomes) == times and "fired" not in outcomes

    await asyncio.to_thread(wait_until, told, timeout=30)


async def the_end(served: Served) -> tuple[str, str, str]:
    """State and error of the only session that the schedule has, and the history's word."""
    (record,) = served.sessions.find(source="schedule:often")
    (fire,) = served.running.schedules.fires("often")
    assert f"session {record['id'][:8]}" in fire.outcome
    assert record["success"] is (record["state"] == "completed")
    assert record["ended_at"]
    return record["state"], record["error"] or "", fire.outcome


@in_loop
async def test_a_run_that_ended_well(repo: Path) -> None:
    async with serving(repo) as served:
        await fired(served)
        state, _, outcome = await the_end(served)
        assert (state, outcome.split(",")[0]) == ("completed", "completed")


@in_loop
async def test_a_run_that_failed(repo: Path) -> None:
    async with serving(repo) as served:
        await fired(served, "[[error:overloaded]]")
        state, error, outcome = await the_end(served)
        assert (state, error) == ("failed", "overloaded")
        assert outcome.startswith("failed, ")
        assert outcome.endswith(": overloaded")


@in_loop
async def test_a_runtime_that_cannot_be_chosen(
    repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing is installed, and none is named."""
    async with serving(repo, "[butler]\n") as served:
        served.running.environ = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
        await fired(served)
        state, error, outcome = await the_end(served)
        assert state == "failed"
        assert error.startswith("Not started: No runtime is usable")
        assert error in outcome


@in_loop
async def test_a_schedule_of_the_file_fires_once_it_was_agreed_to_and_asks_again_when_changed(
    repo: Path,
) -> None:
    daily = (
        '[[butler.schedule]]\nname = "often"\ncron = "* * * * *"\ntimezone = "UTC"\nprompt = "[[say:x]]"\n'
    )
    write_files(repo, {"codev/roster/health/butler.toml": DEMO + daily})
    async with serving(repo) as served:
        file = served.running.butler.directory / "butler.toml"
        clock = served.running.scheduler.clock = Clock(time.time())
        for minute in (1, 2, 3):
            if minute == 2:
                agree_to_all(repo)
            if minute == 3:
                file.write_text(file.read_text().replace("say:x", "say:evil"))
            clock.now += LATER
            await looked(served.running, minute)
        told = [fire.outcome.split(",")[0] for fire in served.running.schedules.fires("often")]
        assert told == [
            "not agreed to: af config agree",
            "completed",
            "not agreed to: af config agree",
        ]


@in_loop
async def test_a_queue_that_is_full(repo: Path) -> None:
    async with serving(repo, f"{DEMO}max_queued_sessions = 0\n") as served:
        busy = asyncio.create_task(served.running.run(SessionRequest(prompt="[[sleep:300]]")))
        await asyncio.to_thread(wait_until, lambda: served.running.spawner.queue.running)
        await fired(served)
        state, error, _ = await the_end(served)
        assert (state, error) == ("failed", "Not started: The queue is full: 0 sessions wait already")
        busy.cancel()
        await asyncio.wait([busy])


@in_loop
async def test_a_butler_that_shuts_down(repo: Path) -> None:
    async with serving(repo) as served:
        served.running.spawner.stop_accepting()
        await fired(served)
        state, error, _ = await the_end(served)
        assert state == "failed"
        assert "shutting down" in error


@in_loop
async def test_what_breaks_while_firing_is_in_the_history(tmp_path: Path) -> None:
    async def fire(schedule: Schedule) -> SpawnerResult:
        raise RuntimeError("a bug")

    clock = Clock()
    scheduler = Scheduler(ScheduleStore(Database(tmp_path / "butler.db"), "health", clock), fire, clock)
    scheduler.store.create(ScheduleEntry("often", "* * * * *", "x", "UTC"))
    clock.now += 60
    assert await scheduler.tick() == ["often"]
    await scheduler.finish()
    assert [fire.outcome for fire in scheduler.store.fires("often")] == ["not started: a bug"]


@pytest.mark.slow
def test_a_server_that_is_stopped_writes_the_end_of_what_it_had_fired(repo: Path, af: Af) -> None:
    commit_files(repo, {"agent-farm.toml": '[spawn]\nruntime = "demo"\n'})
    assert af("butler", "start").returncode == 0
    assert af("schedule", "add", "minutely", "* * * * *", "[[sleep:300]]").returncode == 0
    try:
        wait_until(
            lambda: "running" in af("sessions", "--source", "schedule:minutely").stdout,
            timeout=90,
            what="the schedule",
        )
    finally:
        assert af("butler", "stop").returncode == 0
    assert "Cancelled: the butler shut down" in af("schedule", "history", "minutely").stdout


@in_loop
async def test_every_butlers_schedules_fire_whatever_is_wrong_with_another(
    repo: Path, caplog: pytest.LogCaptureFixture
) -> None:
    due = (
        '[butler]\nruntime = "demo"\n[[butler.schedule]]\nname = "often"\ncron = "* * * * *"\nprompt = "x"\n'
    )
    write_files(
        repo, {"codev/roster/mail/butler.toml": due, "codev/roster/mend/butler.toml": "[butler]\nx = 1\n"}
    )
    agree_to_all(repo)
    async with serving(repo) as served:
        mail = served.butlers.of("mail")
        mail.scheduler.clock = Clock(time.time() + LATER)
        await served.butlers.tick()
        await looked(mail, 1)
        assert caplog.text.count("Looking at the schedules of mend") == 1
