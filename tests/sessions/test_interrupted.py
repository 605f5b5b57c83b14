"""A session that is interrupted keeps what it said and how long it took, and its worker is reset."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agent_farm.errors import LockTaken
from agent_farm.runtimes.headless_run import Interrupted
from agent_farm.runtimes.result import Failure, RuntimeResult, ToolCall
from agent_farm.sessions.records import session_start
from agent_farm.sessions.session import SessionRequest
from tests.server.serving import serving
from tests.sessions.loop import in_loop
from tests.sessions.stage import Call, make_butler, make_stage
from tests.waiting import wait_until

# Speaks as codex does, and does not end by itself.
TALKATIVE = """#!{python}
import json, pathlib, time
for event in (
    {{"type": "thread.started", "thread_id": "t-1"}},
    {{"type": "item.completed", "item": {{"id": "1", "type": "agent_message", "text": "half of it"}}}},
    {{"type": "item.started", "item": {{"id": "2", "type": "command_execution", "command": "make"}}}},
):
    print(json.dumps(event), flush=True)
pathlib.Path({said!r}).write_text("")
time.sleep(300)
"""
CODEX = '[butler]\nruntime = "codex"\n'


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Exists when the program on the PATH that passes for codex has spoken."""
    mark, program = tmp_path / "said", tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text(TALKATIVE.format(python=sys.executable, said=str(mark)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setenv("CODEX_API_KEY", "key")
    return mark


async def interrupted(repo: Path, said: Path, way: str) -> dict[str, Any]:
    async with serving(repo, CODEX) as served:
        request = SessionRequest(prompt="x", timeout=20.0 if way == "timeout" else None)
        session = asyncio.create_task(served.running.run(request))
        await asyncio.to_thread(wait_until, said.exists, what="its first words")
        if way == "drain":
            await served.running.spawner.drain(0.2)
        elif way == "cancel":
            await asyncio.sleep(0.2)
            session.cancel()
        with suppress(asyncio.CancelledError):
            await session
        (record,) = served.sessions.find()
        return served.sessions.get(record["id"])


@pytest.mark.parametrize(
    ("way", "state", "error"),
    [
        ("drain", "cancelled", "Cancelled: the butler shut down"),
        ("cancel", "cancelled", "Cancelled: the caller went away"),
        pytest.param("timeout", "failed", "ended after 20 seconds", marks=pytest.mark.slow),
    ],
)
def test_what_it_said_is_kept(repo: Path, said: Path, way: str, state: str, error: str) -> None:
    record = asyncio.run(interrupted(repo, said, way))
    assert (record["state"], record["error"], record["success"]) == (state, error, False)
    assert record["output"] == "half of it"
    assert [(call["name"], call["result"]) for call in record["tool_calls"]] == [("command_execution", None)]
    assert record["conversation_id"] == "t-1"
    whole = record["ended_at"] - record["started_at"]
    assert 0.2 <= record["duration"] <= whole + 0.01


@in_loop
async def test_the_worker_of_a_cancelled_session_is_reset(tmp_path: Path) -> None:
    runs = asyncio.Event()

    async def act(call: Call) -> RuntimeResult:
        runs.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            partial = RuntimeResult(
                output="a\ud800", tool_calls=(ToolCall("x"),), failure=Failure("killed", "-")
            )
            raise Interrupted(partial) from None
        return RuntimeResult()

    stage = make_stage(tmp_path, act)
    session = asyncio.create_task(stage.spawner.trigger("x"))
    await runs.wait()
    await asyncio.sleep(0.1)
    assert await stage.spawner.drain(timeout=0) is False
    result = await session
    assert stage.script.resets == stage.script.workers
    record = stage.only_record()
    assert (record["output"], len(record["tool_calls"])) == ("a?", 1)
    assert 0.1 <= record["duration"] <= record["ended_at"] - record["started_at"] + 0.02
    assert (result.output, result.duration) == ("a?", record["duration"])
    assert result.input_tokens is record["input_tokens"] is None  # not told, so not known


@in_loop
async def test_a_second_cancellation_does_not_cut_the_reset_short(tmp_path: Path) -> None:
    runs, resetting, done = asyncio.Event(), asyncio.Event(), []

    async def act(call: Call) -> RuntimeResult:
        runs.set()
        await asyncio.sleep(30)
        return RuntimeResult()

    stage = make_stage(tmp_path, act)

    async def slow_reset() -> None:
        resetting.set()
        await asyncio.sleep(0.1)
        done.append("reset")

    create = stage.spawner._adapter.create_worker

    def create_slow() -> Any:
        worker = create()
        worker.reset = slow_reset  # type: ignore[method-assign]
        return worker

    stage.spawner._adapter.create_worker = create_slow  # type: ignore[method-assign]
    session = asyncio.create_task(stage.spawner.trigger("x"))
    await runs.wait()
    (task,) = stage.spawner._tasks
    task.cancel()
    await resetting.wait()
    task.cancel()
    assert (await session).error == "Cancelled: the caller went away"
    assert done == ["reset"]
    assert stage.only_record()["state"] == "cancelled"


@in_loop
async def test_a_session_that_never_started_has_no_duration(tmp_path: Path) -> None:
    runs = asyncio.Event()

    async def act(call: Call) -> RuntimeResult:
        runs.set()
        await asyncio.sleep(30)
        return RuntimeResult()

    stage = make_stage(tmp_path, act)
    sessions = [asyncio.create_task(stage.spawner.trigger(name)) for name in ("runs", "waits")]
    await runs.wait()
    await stage.spawner.drain(timeout=0)
    await asyncio.gather(*sessions)
    durations = {record["prompt"]: record["duration"] for record in stage.records()}
    assert durations["waits"] is None
    assert durations["runs"] is not None


@in_loop
async def test_a_session_that_has_ended_is_not_cancelled_any_more(tmp_path: Path) -> None:
    """While its episode is being stored, what it came to is known already."""
    stage = make_stage(tmp_path, butler=make_butler(tmp_path, memory=True))
    session = asyncio.create_task(stage.spawner.trigger("a telling prompt"))
    run, storing = stage.database.run, asyncio.Event()

    async def slow(function: Any, *arguments: Any) -> Any:
        if function.__name__ == "_store":
            storing.set()
            await asyncio.sleep(0.1)
        return await run(function, *arguments)

    stage.database.run = slow  # type: ignore[method-assign]
    await storing.wait()
    await stage.spawner.drain(timeout=0)
    assert (await session).success
    assert stage.only_record()["state"] == "completed"
    assert len(stage.database.query("SELECT * FROM episodes")) == 1


@in_loop
async def test_a_start_that_comes_after_the_end_changes_nothing(tmp_path: Path) -> None:
    """Cancelled at that instant, the start is still on its way while the end is written."""
    stage = make_stage(tmp_path)
    await stage.spawner.trigger("x")
    before = stage.only_record()
    await session_start(stage.database, before["id"])
    assert stage.only_record() == before


@in_loop
async def test_what_cannot_be_started_is_a_failed_session_and_frees_its_slot(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    run = stage.database.run

    async def busy(function: Any, *arguments: Any) -> Any:
        if function.__name__ == "session_start":
            raise LockTaken("butler.db is busy", why="Others hold it.")
        return await run(function, *arguments)

    stage.database.run = busy  # type: ignore[method-assign]
    result = await stage.spawner.trigger("x")
    assert (result.success, result.error) == (False, "butler.db is busy (Others hold it.)")
    record = stage.only_record()
    assert (record["state"], record["error"]) == ("failed", result.error)
    stage.database.run = run  # type: ignore[method-assign]
    assert (await stage.spawner.trigger("y", trigger_source="trigger")).success
