"""Slots, the queue, refusals, shutdown: what a trigger meets before and after its run."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agent_farm.errors import UsageError
from agent_farm.runtimes.result import RuntimeResult
from agent_farm.sessions import ends
from agent_farm.sessions.session import SessionRequest, SpawnerResult
from tests.sessions.loop import in_loop
from tests.sessions.stage import Call, Stage, make_butler, make_stage
from tests.waiting import wait_until


class Gate:
    """Runs wait here until the test lets them go; what is inside is counted."""

    def __init__(self) -> None:
        self.inside: list[str] = []
        self.most = 0
        self._open = asyncio.Event()
        self._changed = asyncio.Condition()

    async def act(self, call: Call) -> RuntimeResult:
        async with self._changed:
            self.inside.append(call.prompt)
            self.most = max(self.most, len(self.inside))
            self._changed.notify_all()
        try:
            await self._open.wait()
        finally:
            self.inside.remove(call.prompt)
        return RuntimeResult(output=call.prompt)

    async def holds(self, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.inside) == count)

    def open(self) -> None:
        self._open.set()


async def one_at_work(tmp_path: Path, **butler: Any) -> tuple[Gate, Stage, asyncio.Task[SpawnerResult]]:
    """A butler whose only slot is taken until the gate opens."""
    gate = Gate()
    stage = make_stage(tmp_path, gate.act, butler=make_butler(tmp_path, **butler))
    running = asyncio.create_task(stage.spawner.trigger("first"))
    await gate.holds(1)
    return gate, stage, running


@in_loop
async def test_a_second_trigger_waits_while_one_runs(tmp_path: Path) -> None:
    gate, stage, first = await one_at_work(tmp_path)
    second = asyncio.create_task(stage.spawner.trigger("second"))
    await asyncio.sleep(0)
    assert gate.inside == ["first"]
    assert stage.spawner.queue.waiting == 1
    gate.open()
    assert (await first).output == "first"
    assert (await second).output == "second"
    assert gate.most == 1


@in_loop
async def test_the_lock_is_held_until_the_record_is_complete(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    async def act(call: Call) -> RuntimeResult:
        seen.append([record["state"] for record in stage.records()])
        return RuntimeResult(output="x")

    stage = make_stage(tmp_path, act)
    await asyncio.gather(stage.spawner.trigger("a"), stage.spawner.trigger("b"))
    assert sorted(seen[1]) == ["completed", "running"]


@in_loop
async def test_as_many_run_at_once_as_there_are_slots(tmp_path: Path) -> None:
    gate = Gate()
    stage = make_stage(tmp_path, gate.act, butler=make_butler(tmp_path, max_concurrent_sessions=3))
    tasks = [asyncio.create_task(stage.spawner.trigger(f"p{n}")) for n in range(7)]
    await gate.holds(3)
    assert stage.spawner.queue.running == 3
    assert stage.spawner.queue.waiting == 4
    gate.open()
    await asyncio.gather(*tasks)
    assert gate.most == 3


@in_loop
async def test_the_queue_is_first_come_first_served(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    names = [f"p{n}" for n in range(30)]
    await asyncio.gather(*(stage.spawner.trigger(name) for name in names))
    assert [call.prompt for call in stage.script.calls] == names


@in_loop
async def test_a_session_that_triggers_another_is_refused_when_no_slot_is_free(tmp_path: Path) -> None:
    gate, stage, outer = await one_at_work(tmp_path)
    result = await asyncio.wait_for(stage.spawner.trigger("inner", trigger_source="trigger"), 5)
    assert not result.success
    assert "slots are taken" in (result.error or "")
    gate.open()
    assert (await outer).success
    assert len(stage.records()) == 1  # what is refused was never accepted, so it has no record


@in_loop
async def test_a_session_that_triggers_another_runs_it_in_a_free_slot(tmp_path: Path) -> None:
    async def act(call: Call) -> RuntimeResult:
        if call.prompt != "outer":
            return RuntimeResult(output="inner done")
        inner = await stage.spawner.trigger("inner", trigger_source="trigger")
        return RuntimeResult(output=f"outer saw: {inner.output}")

    stage = make_stage(tmp_path, act, butler=make_butler(tmp_path, max_concurrent_sessions=2))
    assert (await stage.spawner.trigger("outer")).output == "outer saw: inner done"


@in_loop
async def test_self_triggers_at_the_same_instant_never_share_a_slot(tmp_path: Path) -> None:
    gate = Gate()
    stage = make_stage(tmp_path, gate.act, butler=make_butler(tmp_path, max_concurrent_sessions=2))
    tasks = [asyncio.create_task(stage.spawner.trigger(f"p{n}", trigger_source="trigger")) for n in range(5)]
    await gate.holds(2)
    gate.open()
    results = await asyncio.gather(*tasks)
    assert [result.success for result in results].count(True) == 2
    assert stage.spawner.queue.waiting == 0


@in_loop
async def test_a_full_queue_refuses_at_once(tmp_path: Path) -> None:
    gate, stage, first = await one_at_work(tmp_path, max_queued_sessions=2)
    tasks = [first, *(asyncio.create_task(stage.spawner.trigger(f"p{n}")) for n in range(2))]
    await asyncio.sleep(0)
    result = await asyncio.wait_for(stage.spawner.trigger("one too many"), 5)
    assert not result.success
    assert "queue is full" in (result.error or "")
    gate.open()
    assert all(done.success for done in await asyncio.gather(*tasks))
    assert (await stage.spawner.trigger("later")).success


@in_loop
async def test_stop_accepting_refuses_what_comes_later(tmp_path: Path) -> None:
    gate, stage, running = await one_at_work(tmp_path)
    stage.spawner.stop_accepting()
    late = await stage.spawner.trigger("late")
    assert not late.success
    assert "shutting down" in (late.error or "")
    gate.open()
    assert (await running).success


@in_loop
async def test_drain_waits_for_what_runs(tmp_path: Path) -> None:
    gate, stage, running = await one_at_work(tmp_path)
    tasks = [running, asyncio.create_task(stage.spawner.trigger("waits"))]
    await asyncio.sleep(0)
    draining = asyncio.create_task(stage.spawner.drain(timeout=30.0))
    gate.open()
    assert await draining is True
    assert all(result.success for result in await asyncio.gather(*tasks))


@in_loop
async def test_drain_cancels_what_is_late_and_completes_its_records(tmp_path: Path) -> None:
    gate, stage, running = await one_at_work(tmp_path)
    tasks = [running, asyncio.create_task(stage.spawner.trigger("waits"))]
    await asyncio.sleep(0)
    assert await stage.spawner.drain(timeout=0.05) is False
    results = await asyncio.gather(*tasks)
    assert [result.success for result in results] == [False, False]
    assert all("shut down" in (result.error or "") for result in results)
    assert {record["state"] for record in stage.records()} == {"cancelled"}
    assert all(record["success"] is False and record["ended_at"] for record in stage.records())
    assert gate.inside == []


@in_loop
async def test_drain_with_nothing_to_do_returns_at_once(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    assert await stage.spawner.drain(timeout=30.0) is True


@in_loop
async def test_a_cancelled_caller_cancels_its_session_and_frees_the_slot(tmp_path: Path) -> None:
    gate, stage, caller = await one_at_work(tmp_path)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    record = stage.only_record()
    assert (record["state"], record["success"]) == ("cancelled", False)
    assert "caller went away" in record["error"]
    gate.open()
    assert (await stage.spawner.trigger("next")).success


@in_loop
async def test_a_caller_cancelled_in_the_queue_never_runs(tmp_path: Path) -> None:
    gate, stage, first = await one_at_work(tmp_path)
    queued = asyncio.create_task(stage.spawner.trigger("queued"))
    await asyncio.sleep(0)
    queued.cancel()
    with pytest.raises(asyncio.CancelledError):
        await queued
    gate.open()
    await first
    assert (await stage.spawner.trigger("third")).success
    assert [call.prompt for call in stage.script.calls] == ["first", "third"]


@in_loop
async def test_a_trigger_cancelled_at_once_gives_its_place_back(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    for _ in range(3):
        caller = asyncio.create_task(stage.spawner.trigger("x"))
        await asyncio.sleep(0)
        assert stage.spawner.queue.running == 1
        caller.cancel()
        with suppress(asyncio.CancelledError):
            await caller
    assert (stage.spawner.queue.running, stage.spawner.queue.waiting) == (0, 0)
    assert (await stage.spawner.trigger("y", trigger_source="trigger")).success


@in_loop
async def test_every_session_has_a_worker_of_its_own(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    await asyncio.gather(*(stage.spawner.trigger(f"p{n}") for n in range(4)))
    assert len(set(stage.script.workers)) == 4
    assert stage.script.resets == []


@pytest.mark.parametrize("source", ["tick", "external", "trigger", "route", "schedule:daily_digest"])
@in_loop
async def test_trigger_sources_reach_the_record(tmp_path: Path, source: str) -> None:
    stage = make_stage(tmp_path)
    await stage.spawner.trigger("x", trigger_source=source)
    assert stage.only_record()["trigger_source"] == source


@pytest.mark.parametrize(
    "source", ["", "cron", "schedule:", "schedule:a b", "schedule:../x", "Tick", "schedule"]
)
@in_loop
async def test_other_trigger_sources_are_refused(tmp_path: Path, source: str) -> None:
    stage = make_stage(tmp_path)
    with pytest.raises(UsageError, match="not a trigger source"):
        await stage.spawner.trigger("x", trigger_source=source)
    assert stage.records() == []


@in_loop
async def test_a_prompt_that_says_nothing_or_cannot_be_written_is_refused(tmp_path: Path) -> None:
    for prompt, message in (("  ", "is empty"), ("a\0b", "contains NUL"), ("a\udcff", "not UTF-8")):
        with pytest.raises(UsageError, match=message):
            await make_stage(tmp_path).spawner.trigger(prompt)


@in_loop
async def test_max_turns_is_20_unless_given(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    await stage.spawner.trigger("a")
    await stage.spawner.trigger("b", max_turns=5)
    assert [call.max_turns for call in stage.script.calls] == [20, 5]


@in_loop
async def test_context_is_put_before_the_prompt(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    await stage.spawner.trigger("Process this", "User sent: hello")
    assert stage.script.calls[0].prompt == "User sent: hello\n\nProcess this"
    assert stage.only_record()["context"] == "User sent: hello"
    assert stage.only_record()["prompt"] == "User sent: hello\n\nProcess this"


@in_loop
async def test_sessions_run_in_the_butlers_directory_unless_told_otherwise(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    await stage.spawner.trigger("Check overdue tasks")
    await stage.spawner.run(SessionRequest(prompt="there", cwd=str(tmp_path), model="big"))
    first, second = stage.script.calls
    assert (first.cwd, first.prompt, first.system_prompt) == (
        stage.butler.directory,
        "Check overdue tasks",
        "Be kind.",
    )
    assert (second.cwd, second.model) == (tmp_path, "big")


@in_loop
async def test_an_answer_outlives_a_full_disk_and_its_record_is_completed_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ends, "RETRY_SECONDS", 0.05)
    output = "x" * 500_000

    async def fill_the_disk(call: Call) -> RuntimeResult:
        (pages,) = stage.database.query("PRAGMA page_count")[0]
        stage.database.query(f"PRAGMA max_page_count = {pages}")
        return RuntimeResult(output=output, cost=0.25)

    stage = make_stage(tmp_path, fill_the_disk)
    result = await stage.spawner.trigger("costly")
    assert (result.success, result.output, result.cost) == (True, output, 0.25)
    assert stage.only_record()["state"] == "running"
    assert stage.spawner.is_busy  # the server does not end before that is written
    stage.database.query("PRAGMA max_page_count = 100000")
    await asyncio.to_thread(wait_until, lambda: not stage.spawner.is_busy)
    record = stage.only_record()
    assert (record["state"], record["output"], record["ended_at"] > 0) == ("completed", output, True)


@in_loop
async def test_an_end_that_could_not_be_written_is_tried_once_more_at_the_servers_end(tmp_path: Path) -> None:
    async def fill_the_disk(call: Call) -> RuntimeResult:
        (pages,) = stage.database.query("PRAGMA page_count")[0]
        stage.database.query(f"PRAGMA max_page_count = {pages}")
        return RuntimeResult(output="x" * 500_000)

    stage = make_stage(tmp_path, fill_the_disk)
    await stage.spawner.trigger("costly")
    stage.database.query("PRAGMA max_page_count = 100000")
    await stage.spawner.drain(1)
    assert stage.only_record()["state"] == "completed"
