from __future__ import annotations

import logging
from pathlib import Path

import pytest

from agent_farm.butler import fetch_memory_context, store_session_episode
from agent_farm.runtimes.result import Failure, RuntimeResult
from agent_farm.sessions.database import Database
from tests.sessions.loop import in_loop
from tests.sessions.stage import Call, make_butler, make_stage


@in_loop
async def test_what_was_stored_is_found_by_its_words(tmp_path: Path) -> None:
    database = Database(tmp_path / "butler.db")
    await store_session_episode(database, "health", "s1", "Check blood pressure", "It was 120 over 80.")
    await store_session_episode(database, "health", "s2", "Plan the garden", "Tomatoes in May.")
    found = await fetch_memory_context(database, "health", "How is my blood pressure?")
    assert found is not None
    assert "120 over 80" in found
    assert "Tomatoes" not in found
    assert await fetch_memory_context(database, "health", "Fix the bicycle") is None
    assert await fetch_memory_context(database, "relationship", "blood pressure") is None


@in_loop
async def test_the_best_match_comes_first_and_length_is_bounded(tmp_path: Path) -> None:
    database = Database(tmp_path / "butler.db")
    await store_session_episode(database, "b", "s1", "walk", "garden " + "filler " * 2000)
    await store_session_episode(database, "b", "s2", "garden tomatoes", "garden tomatoes in May")
    found = await fetch_memory_context(database, "b", "garden tomatoes", characters=1000)
    assert found is not None
    assert found.index("in May") < found.index("filler")
    assert len(found) < 1500


@pytest.mark.parametrize(
    "prompt", ['"', "NEAR(a b)", "a* OR (", "'; DROP TABLE episodes; --", "日本語の質問", "", "?!"]
)
@in_loop
async def test_any_prompt_can_be_asked(tmp_path: Path, prompt: str) -> None:
    database = Database(tmp_path / "butler.db")
    await store_session_episode(database, "b", "s", prompt or "x", "日本語の質問 answered")
    await fetch_memory_context(database, "b", prompt)
    assert len(database.query("SELECT * FROM episodes")) == 1


@in_loop
async def test_a_session_remembers_the_one_before(tmp_path: Path) -> None:
    async def act(call: Call) -> RuntimeResult:
        return RuntimeResult(output="The answer is forty-two.")

    stage = make_stage(tmp_path, act, butler=make_butler(tmp_path, memory=True))
    await stage.spawner.trigger("What is the answer?")
    await stage.spawner.trigger("Tell me the answer again")
    first, second = stage.script.calls
    assert first.system_prompt == "Be kind."
    assert second.system_prompt.startswith("Be kind.\n\n## From earlier sessions\n\n")
    assert "forty-two" in second.system_prompt


@in_loop
async def test_failures_are_not_remembered(tmp_path: Path) -> None:
    async def act(call: Call) -> RuntimeResult:
        return RuntimeResult(output="half", failure=Failure("failed", "no"))

    stage = make_stage(tmp_path, act, butler=make_butler(tmp_path, memory=True))
    await stage.spawner.trigger("What is the answer?")
    assert stage.database.query("SELECT * FROM episodes") == []


@in_loop
async def test_without_the_module_nothing_is_stored_or_fetched(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    await stage.spawner.trigger("answer")
    await stage.spawner.trigger("answer")
    assert stage.database.query("SELECT * FROM episodes") == []
    assert stage.script.calls[1].system_prompt == "Be kind."


@in_loop
async def test_a_broken_memory_is_logged_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stage = make_stage(tmp_path, butler=make_butler(tmp_path, memory=True))
    with stage.database.transaction() as connection:
        connection.execute("DROP TABLE episodes_text")
    with caplog.at_level(logging.WARNING):
        result = await stage.spawner.trigger("What is the answer?")
    assert result.success
    assert stage.script.calls[0].system_prompt == "Be kind."
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "Memory could not be read; the session goes on without it",
        "The session's episode could not be stored",
    ]
    assert "no such table: episodes_text" in caplog.text
    assert "Traceback" not in caplog.text
