"""What is on record after a run, however it ended."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from agent_farm.errors import NotFound
from agent_farm.runtimes.result import Failure, RuntimeResult, ToolCall, Usage
from agent_farm.sessions.records import session_complete, session_create, session_start
from agent_farm.sessions.runner import ended
from agent_farm.sessions.session import Session, SessionRequest
from agent_farm.sessions.tool_calls import merge_calls, record_served_call
from tests.sessions.loop import in_loop
from tests.sessions.records import Records
from tests.sessions.stage import Call, make_stage


def a_session(id: str, butler: str = "health") -> Session:
    return Session(id=id, butler=butler, prompt="p", runtime="demo")


@pytest.mark.parametrize(("usage", "tokens"), [(Usage(), None), (Usage(input_tokens=3), 3)])
def test_tokens_that_a_failed_run_did_not_tell_are_unknown(usage: Usage, tokens: int | None) -> None:
    failed = RuntimeResult(usage=usage, failure=Failure("time-limit", "ended after 5 seconds"))
    assert ended(a_session("x"), failed).input_tokens == tokens


@in_loop
async def test_a_successful_session(tmp_path: Path) -> None:
    async def act(call: Call) -> RuntimeResult:
        return RuntimeResult(
            output="Done. 3 tasks checked.",
            tool_calls=(
                ToolCall("state_get", {"key": "tasks"}, "[]"),
                ToolCall("state_set", {"key": "last_check", "value": "2026-02-09"}),
            ),
            usage=Usage(100, 20, 7),
            cost=0.5,
            conversation_id="conv",
        )

    stage = make_stage(tmp_path, act)
    result = await stage.spawner.trigger("Check tasks")
    assert (result.success, result.error, result.output) == (True, None, "Done. 3 tasks checked.")
    record = Records(stage.log).get(result.session_id or "")
    assert record["state"] == "completed"
    assert record["success"] is True
    assert record["error"] is None
    assert record["output"] == "Done. 3 tasks checked."
    assert [(call["name"], call["input"]) for call in record["tool_calls"]] == [
        ("state_get", {"key": "tasks"}),
        ("state_set", {"key": "last_check", "value": "2026-02-09"}),
    ]
    assert result.tool_calls == record["tool_calls"]
    assert (record["input_tokens"], record["output_tokens"], record["cached_tokens"]) == (100, 20, 7)
    assert (record["cost"], record["conversation_id"], record["runtime"]) == (0.5, "conv", "scripted")
    assert record["created_at"] <= record["started_at"] <= record["ended_at"]


@in_loop
async def test_a_session_that_fails_keeps_its_partial_output(tmp_path: Path) -> None:
    async def act(call: Call) -> RuntimeResult:
        return RuntimeResult(output="half", failure=Failure("time-limit", "SDK timeout after 300s"))

    stage = make_stage(tmp_path, act)
    result = await stage.spawner.trigger("x")
    assert (result.success, result.error, result.output) == (False, "SDK timeout after 300s", "half")
    record = stage.only_record()
    assert (record["state"], record["success"]) == ("failed", False)
    assert "SDK timeout after 300s" in record["error"]
    assert stage.script.resets == stage.script.workers


@in_loop
async def test_a_runtime_that_raises_is_a_failed_session_and_is_reset(tmp_path: Path) -> None:
    async def act(call: Call) -> RuntimeResult:
        raise ConnectionError("Connection refused")

    stage = make_stage(tmp_path, act)
    result = await stage.spawner.trigger("x")
    assert (result.success, result.error) == (False, "Connection refused")
    record = stage.only_record()
    assert (record["success"], record["error"]) == (False, "Connection refused")
    assert record["duration"] is not None
    assert stage.script.resets == stage.script.workers
    assert (await stage.spawner.trigger("again")).error == "Connection refused"


@in_loop
async def test_half_a_character_does_not_cost_the_record(tmp_path: Path) -> None:
    async def act(call: Call) -> RuntimeResult:
        return RuntimeResult(output="a\ud800b", tool_calls=(ToolCall("x", {"t": "\udfff"}),))

    stage = make_stage(tmp_path, act)
    result = await stage.spawner.trigger("x")
    assert (result.output, result.tool_calls[0]["input"]) == ("a?b", {"t": "?"})
    assert (stage.only_record()["state"], stage.only_record()["output"]) == ("completed", "a?b")


@in_loop
async def test_the_duration_is_that_of_the_run(tmp_path: Path) -> None:
    async def act(call: Call) -> RuntimeResult:
        await asyncio.sleep(0.25)
        return RuntimeResult()

    stage = make_stage(tmp_path, act)
    begun = time.monotonic()
    results = await asyncio.gather(stage.spawner.trigger("a"), stage.spawner.trigger("b"))
    both = time.monotonic() - begun
    assert all(result.duration >= 0.24 for result in results)
    assert max(result.duration for result in results) <= both - 0.24  # waiting for a slot does not count
    for result in results:
        assert Records(stage.log).get(result.session_id or "")["duration"] == pytest.approx(result.duration)


@in_loop
async def test_a_record_exists_before_the_run_and_says_queued(tmp_path: Path) -> None:
    events: list[tuple[str, str]] = []
    stage = make_stage(tmp_path)

    def watch(progress: object) -> None:
        events.append((progress.event, Records(stage.log).get(progress.session_id)["state"]))  # type: ignore[attr-defined]

    await stage.spawner.run(SessionRequest(prompt="x"), observer=watch)
    assert events == [("queued", "queued"), ("running", "running"), ("ended", "completed")]


@in_loop
async def test_create_comes_before_the_run_and_complete_after_it(tmp_path: Path) -> None:
    assert asyncio.iscoroutinefunction(session_create)
    assert asyncio.iscoroutinefunction(session_complete)
    states: list[str] = []

    async def act(call: Call) -> RuntimeResult:
        states.append(stage.only_record()["state"])
        return RuntimeResult()

    stage = make_stage(tmp_path, act)
    await stage.spawner.trigger("x")
    assert [*states, stage.only_record()["state"]] == ["running", "completed"]


@in_loop
async def test_calls_the_server_served_are_on_record_once(tmp_path: Path) -> None:
    async def act(call: Call) -> RuntimeResult:
        session = call.env["AF_SESSION"]
        for name in ("state_set", "trigger"):
            await record_served_call(stage.database, session, ToolCall(name, {"key": name}, "ok", False), 0.1)
        return RuntimeResult(tool_calls=(ToolCall("mcp__health__state_set", {"key": "state_set"}, "ok"),))

    stage = make_stage(tmp_path, act)
    result = await stage.spawner.trigger("x")
    assert [call["name"] for call in result.tool_calls] == ["mcp__health__state_set", "trigger"]
    assert all(call["served"] for call in result.tool_calls)


def test_two_equal_served_calls_stay_two() -> None:
    served = [ToolCall("state_get", {"key": "a"}, "1", False)] * 2
    merged = merge_calls(({"name": "state_get", "input": {"key": "a"}},), served)
    assert len(merged) == 2
    assert not any(call["name"] == "restate_get" for call in merge_calls((), served))
    assert len(merge_calls(({"name": "restate_get", "input": {"key": "a"}},), served[:1])) == 2


@in_loop
async def test_sessions_of_a_dead_server_are_interrupted(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    for name in ("queued", "running"):
        await session_create(stage.database, a_session(name))
    await session_start(stage.database, "running")
    assert stage.log.has_unended()
    assert stage.log.heal() == 2
    states = {record["id"]: record["state"] for record in stage.records()}
    assert states == {"queued": "interrupted", "running": "interrupted"}
    assert (stage.log.load("queued").error or "").endswith("(it had not started)")
    assert "gone" in (stage.log.load("running").error or "")
    assert stage.log.load("running").success is False
    assert not stage.log.has_unended()
    assert stage.log.heal() == 0


@in_loop
async def test_finding_sessions(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    for name in ("tick", "external", "tick"):
        await stage.spawner.trigger(name * 300, trigger_source=name)
    assert [record["trigger_source"] for record in stage.records()] == ["tick", "external", "tick"]
    assert len(stage.log.find(source="tick")) == 2
    assert len(stage.log.find(limit=1)) == 1
    assert stage.log.find(states=["failed"]) == []
    assert len(stage.log.find(states=["failed", "completed"])) == 3
    assert len(stage.records()[0]["prompt"]) == 200
    newest = stage.records()[0]["id"]
    assert Records(stage.log).get(newest[:8])["prompt"] == "tick" * 300
    with pytest.raises(NotFound):
        Records(stage.log).get("nothing")
    with pytest.raises(NotFound):
        Records(stage.log).get("%")
