"""Events of the CLIs, as the real ones print them, become progress and an answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_farm.ask.agent_run import Transcript, parser_of
from agent_farm.launch import Launch

CLAUDE = [
    {"type": "system", "subtype": "init"},
    {
        "type": "assistant",
        "message": {
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "/src/a.py"}},
            ]
        },
    },
    {"type": "result", "is_error": False, "result": "It is a.", "subtype": "success"},
]
CODEX = [
    {"type": "item.completed", "item": {"type": "error", "message": "a warning"}},
    {"type": "item.started", "item": {"id": "1", "type": "command_execution", "command": "cat /src/a.py"}},
    {"type": "item.completed", "item": {"type": "agent_message", "text": "I look."}},
    {"type": "item.completed", "item": {"type": "agent_message", "text": "It is a."}},
    {"type": "turn.completed"},
]
GEMINI = [
    {"type": "message", "role": "user", "content": "Why?"},
    {"type": "message", "role": "assistant", "content": "I look.", "delta": True},
    {"type": "tool_use", "tool_id": "t", "tool_name": "read_file", "parameters": {"file_path": "/src/a.py"}},
    {"type": "message", "role": "assistant", "content": "It ", "delta": True},
    {"type": "message", "role": "assistant", "content": "is a.", "delta": True},
    {"type": "result", "status": "success"},
]


def transcript_of(form: str, narrate: Callable[[str], None] = print) -> Transcript:
    return Transcript(parser_of(form, Launch(("x",), Path("/"), {})), narrate)


@pytest.mark.parametrize(
    ("form", "events", "shown"),
    [
        ("claude", CLAUDE, "Read /src/a.py"),
        ("codex", CODEX, "command_execution cat /src/a.py"),
        ("gemini", GEMINI, "read_file /src/a.py"),
    ],
)
def test_events_become_progress_and_answer(form: str, events: list[object], shown: str) -> None:
    told: list[str] = []
    transcript = transcript_of(form, told.append)
    for event in events:
        transcript.hear(json.dumps(event) + "\n")
    assert told == [shown]
    assert transcript.answer == "It is a."
    assert transcript.failure is None


@pytest.mark.parametrize(
    ("form", "event"),
    [
        ("claude", {"type": "result", "subtype": "success", "is_error": True, "result": "no credit"}),
        ("codex", {"type": "turn.failed", "error": {"message": "no credit"}}),
        ("gemini", {"type": "result", "status": "error", "error": {"message": "no credit"}}),
    ],
)
def test_failures_are_in_the_events_too(form: str, event: object) -> None:
    transcript = transcript_of(form)
    transcript.hear(json.dumps(event) + "\n")
    assert transcript.failure == "no credit"


@pytest.mark.parametrize("form", ["text", "claude", "codex", "gemini"])
@pytest.mark.parametrize("plain", ["plain\nanswer\n", "[1]\n", "no end", "null\n"])
def test_output_without_events_is_the_answer(form: str, plain: str) -> None:
    transcript = transcript_of(form)
    for line in plain.splitlines(keepends=True):
        transcript.hear(line)
    assert transcript.answer == plain
