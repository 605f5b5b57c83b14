from __future__ import annotations

import inspect

import pytest

from agent_farm.butler import MockSpawner, Spawner, SpawnerResult
from tests.sessions.loop import in_loop


@in_loop
async def test_it_records_invocations() -> None:
    spawner = MockSpawner()
    await spawner.trigger(prompt="Check tasks")
    await spawner.trigger("Process this", context="User sent: hello")
    assert [(call.prompt, call.context) for call in spawner.invocations] == [
        ("Check tasks", None),
        ("Process this", "User sent: hello"),
    ]


@in_loop
async def test_it_answers_by_a_part_of_the_prompt() -> None:
    canned = SpawnerResult(output="72 bpm")
    spawner = MockSpawner(responses={"health": canned, "Check": SpawnerResult(output="other")})
    assert await spawner.trigger("Check health data") is canned
    assert (await spawner.trigger("Check mail")).output == "other"


@in_loop
async def test_without_a_match_the_answer_is_an_empty_success() -> None:
    result = await MockSpawner(responses={"health": SpawnerResult(output="x")}).trigger("mail")
    assert (result.success, result.output, result.tool_calls, result.error) == (True, "", [], None)


@in_loop
async def test_assert_triggered() -> None:
    spawner = MockSpawner()
    with pytest.raises(AssertionError):
        spawner.assert_triggered()
    spawner.assert_triggered(times=0)
    for _ in range(3):
        await spawner.trigger("x")
    spawner.assert_triggered(times=3)
    spawner.assert_triggered()
    with pytest.raises(AssertionError, match="expected 2 triggers, saw 3"):
        spawner.assert_triggered(times=2)


@in_loop
async def test_assert_prompted_with() -> None:
    spawner = MockSpawner()
    await spawner.trigger("Review contacts for birthdays")
    spawner.assert_prompted_with("birthdays")
    with pytest.raises(AssertionError, match="medications"):
        spawner.assert_prompted_with("medications")


def test_it_takes_what_the_spawner_takes() -> None:
    """A call that a test made on the mock must not fail on the real one."""
    mocked = inspect.signature(MockSpawner.trigger).parameters
    real = inspect.signature(Spawner.trigger).parameters
    for name, parameter in mocked.items():
        assert (real[name].kind, real[name].default) == (parameter.kind, parameter.default)
    assert set(dir(MockSpawner)) >= {"trigger", "stop_accepting", "drain"}


def test_the_result_has_the_documented_fields() -> None:
    result = SpawnerResult(output="All tasks done", tool_calls=[{}, {}, {}], success=True, error=None)
    assert len(result.tool_calls) == 3
    failed = SpawnerResult(output="", tool_calls=[], success=False, error="Connection refused")
    assert (failed.success, failed.error) == (False, "Connection refused")
