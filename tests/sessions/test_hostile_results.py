"""What a runtime or a caller says that no record can hold: the session ends all the same, and is listed."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import pytest

from agent_farm.runtimes.cli import Start
from agent_farm.runtimes.result import RuntimeResult, ToolCall, Usage
from agent_farm.sessions import runner
from agent_farm.sessions.failures import MOST_LEVELS, is_deeper, readable
from agent_farm.sessions.tool_calls import record_served_call
from tests.sessions.loop import in_loop
from tests.sessions.records import Records
from tests.sessions.stage import Call, ScriptedAdapter, make_stage


@in_loop
async def test_numbers_that_are_not_finite_are_text_in_a_record(tmp_path: Path) -> None:
    async def act(call: Call) -> RuntimeResult:
        given = ToolCall("state_set", {"value": [math.inf]}, "ok")
        await record_served_call(stage.database, call.env["AF_SESSION"], given, 0.1)
        return RuntimeResult(tool_calls=(given, ToolCall("x", {"n": math.nan})))

    stage = make_stage(tmp_path, act)
    result = await stage.spawner.trigger("x")
    assert [call["input"] for call in result.tool_calls] == [{"value": ["Infinity"]}, {"n": "NaN"}]
    assert [record["tool_calls"] for record in stage.records()] == [2]


@in_loop
async def test_a_record_that_sqlite_does_not_take_for_json_is_listed_and_shown(tmp_path: Path) -> None:
    """Earlier versions wrote such calls."""
    stage = make_stage(tmp_path)
    await stage.spawner.trigger("old")
    stage.database.write("UPDATE sessions SET tool_calls = ?", ('[{"name": "x", "input": {"n": Infinity}}]',))
    await stage.spawner.trigger("new")
    assert [record["prompt"] for record in stage.records()] == ["new", "old"]
    old = Records(stage.log).get(stage.records()[1]["id"])
    assert old["tool_calls"] == [{"name": "x", "input": {"n": "Infinity"}}]


@in_loop
async def test_a_call_of_any_depth_leaves_a_record_that_ends(tmp_path: Path) -> None:
    async def act(call: Call) -> RuntimeResult:
        stage.database.write(  # as earlier versions wrote it
            "INSERT INTO served_calls (caller, name, input, result, failed, at, seconds)"
            " VALUES (?, 'y', ?, 'ok', 0, 0, 0)",
            (call.env["AF_SESSION"], json.dumps(nested(600))),
        )
        return RuntimeResult(output="done", tool_calls=(ToolCall("x", nested(900)),))

    stage = make_stage(tmp_path, act)
    result = await stage.spawner.trigger("x")
    assert (result.success, result.output, len(result.tool_calls)) == (True, "done", 2)
    assert json.dumps(stage.only_record()["tool_calls"], ensure_ascii=False).count('["…"]') == 2
    assert [(record["state"], record["tool_calls"]) for record in stage.records()] == [("completed", 2)]


def nested(levels: int) -> dict[str, object]:
    value: object = 1
    for _ in range(levels - 1):
        value = [value]
    return {"value": value}


def test_a_record_holds_as_many_levels_as_a_call_may_have() -> None:
    assert readable(nested(MOST_LEVELS)) == nested(MOST_LEVELS)
    assert [is_deeper(nested(MOST_LEVELS + more)) for more in (0, 1, 800)] == [False, True, True]


@pytest.mark.parametrize(
    "kept_out", [{"conversation_id": "\ud800"}, {"usage": Usage(input_tokens=1 << 63)}], ids=repr
)
@in_loop
async def test_an_end_that_cannot_be_stored_is_recorded_without_it(
    tmp_path: Path, kept_out: dict[str, Any]
) -> None:
    async def act(call: Call) -> RuntimeResult:
        return RuntimeResult(output="done", tool_calls=(ToolCall("x"),), **kept_out)

    stage = make_stage(tmp_path, act)
    result = await stage.spawner.trigger("x")
    assert (result.success, result.output) == (True, "done")
    record = stage.only_record()
    assert (record["state"], record["output"], record["tool_calls"]) == ("completed", "done", [])
    assert "could not be recorded: That cannot be stored" in record["error"]
    assert record["ended_at"] is not None
    assert not stage.spawner.is_busy


@in_loop
async def test_progress_that_cannot_be_recorded_does_not_cost_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = asyncio.Event()

    async def fail(*given: object) -> None:
        tried.set()
        raise RecursionError

    async def run_headless(self: ScriptedAdapter, start: Start) -> RuntimeResult:
        assert start.on_progress is not None
        start.on_progress(RuntimeResult(output="half"))
        await tried.wait()
        return RuntimeResult(output="done")

    monkeypatch.setattr(runner, "session_progress", fail)
    monkeypatch.setattr(ScriptedAdapter, "run_headless", run_headless)
    result = await make_stage(tmp_path).spawner.trigger("x")
    assert (result.error, result.output) == (None, "done")
