"""A turn is an answer of the model, however many tools it calls, and whatever it says before."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from agent_farm.runtimes.codex_events import CodexEvents
from agent_farm.runtimes.gemini_events import GeminiEvents
from agent_farm.runtimes.process import Ended
from tests.runtimes.orders import make_start

KEY = {"CODEX_API_KEY": "k"}
THREAD = "01a1f005-cae4"


def command(number: int) -> list[dict[str, object]]:
    item = {"id": f"i{number}", "type": "command_execution", "command": "ls"}
    done = {**item, "aggregated_output": "x", "exit_code": 0}
    return [{"type": "item.started", "item": item}, {"type": "item.completed", "item": done}]


def feed(parser: CodexEvents | GeminiEvents, events: Iterable[object]) -> list[str | None]:
    return [parser.line(json.dumps(event)) for event in events]


def test_21_commands_of_codex_in_one_answer_are_one_turn(tmp_path: Path) -> None:
    parser = CodexEvents(make_start(tmp_path, env=KEY, max_turns=20))
    events = [{"type": "thread.started", "thread_id": THREAD}]
    events += [event for number in range(21) for event in command(number)]
    events += [{"type": "item.completed", "item": {"id": "m", "type": "agent_message", "text": "done"}}]
    assert set(feed(parser, [*events, {"type": "turn.completed"}])) == {None}
    result = parser.result(Ended(), None)
    assert (result.success, result.turns, len(result.tool_calls)) == (True, 1, 21)


def test_answers_of_codex_are_counted_in_its_own_record(tmp_path: Path) -> None:
    parser = CodexEvents(make_start(tmp_path, env=KEY, max_turns=2))
    rollout = tmp_path / "sessions/2026/11/18" / f"rollout-2026-11-18T18-57-53-{THREAD}.jsonl"
    rollout.parent.mkdir(parents=True)
    counted = json.dumps({"payload": {"type": "token_count", "info": {"total_token_usage": {}}}})
    limits = json.dumps({"payload": {"type": "token_count", "info": None}})
    feed(parser, [{"type": "thread.started", "thread_id": THREAD}])
    rollout.write_text(f"{limits}\n{counted}\n{counted}\n{counted[:20]}")
    assert set(feed(parser, command(1))) == {None}
    rollout.write_text(f"{limits}\n{counted}\n{counted}\n{counted}\n")
    assert feed(parser, command(2))[0] == "turn-limit"
    assert parser.turns == 3


def test_codex_that_fails_after_its_whole_answer_has_answered(tmp_path: Path) -> None:
    parser = CodexEvents(make_start(tmp_path, env=KEY, max_turns=2))
    message = {"id": "m", "type": "agent_message", "text": "the answer"}
    feed(parser, [{"type": "item.completed", "item": message}, {"type": "turn.completed"}])
    result = parser.result(Ended(exit_code=1), None)
    assert (result.success, result.output) == (True, "the answer")


def gemini_call(number: int) -> dict[str, object]:
    return {"type": "tool_use", "tool_id": str(number), "tool_name": "ls", "parameters": {}}


def gemini_result(number: int) -> dict[str, object]:
    return {"type": "tool_result", "tool_id": str(number), "status": "success", "output": "x"}


def test_calls_of_gemini_in_one_answer_are_one_turn(tmp_path: Path) -> None:
    parser = GeminiEvents(make_start(tmp_path, max_turns=3))
    said = {"type": "message", "role": "assistant", "content": "looking", "delta": True}
    feed(parser, [said, *map(gemini_call, range(5)), *map(gemini_result, range(5)), said, {"type": "result"}])
    result = parser.result(Ended(), None)
    assert (result.turns, result.success) == (2, True)


def test_gemini_that_stopped_itself_with_nothing_said_is_no_success(tmp_path: Path) -> None:
    parser = GeminiEvents(make_start(tmp_path, max_turns=20))
    warning = {"type": "error", "severity": "warning", "message": "Loop detected, stopping execution"}
    feed(parser, [gemini_call(1), gemini_result(1), warning, {"type": "result", "status": "success"}])
    failure = parser.result(Ended(), None).failure
    assert failure is not None
    assert failure.message == "Loop detected, stopping execution"


def test_an_event_that_is_cut_off_is_told_as_that(tmp_path: Path) -> None:
    parser = GeminiEvents(make_start(tmp_path, max_turns=20))
    parser.line('{"type":"message","role":"assistant","content":"half of i')
    failure = parser.result(Ended(stderr="Ripgrep is not available. Falling back to GrepTool."), None).failure
    assert failure is not None
    assert "ended in the middle of an event" in failure.message
