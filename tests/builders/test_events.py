"""Reading what launchers and hooks wrote, whatever a crash or a builder left in the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_farm.builders.events import last_conversation, last_state, load_events, load_exit


def line(run: str = "r1", state: str | None = "working", **more: object) -> str:
    event = {"at": 1.5, "run": run, "source": "hook", "event": "Stop", "state": state, "reason": None}
    return json.dumps({**event, "conversation_id": None, **more})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def test_the_newest_state_of_the_run(file: Path) -> None:
    file.write_text("\n".join([line(), line(state="idle", reason="x"), line(state=None), line("r0")]) + "\n")
    event = last_state(file, "r1")
    assert event is not None
    assert (event.state, event.source, event.at, event.reason) == ("idle", "hook", 1.5, "x")


def test_no_file_and_no_state(file: Path) -> None:
    assert last_state(file, "r1") is None
    assert load_events(file) == []
    file.write_text(line("other") + "\n")
    assert last_state(file, "r1") is None


def test_a_state_before_a_long_tail_of_others_is_found(file: Path) -> None:
    noise = [line(state=None, detail={"text": "x" * 500}) for _ in range(200)]
    file.write_text("\n".join([line(state="waiting"), *noise]) + "\n")
    event = last_state(file, "r1")
    assert event is not None
    assert event.state == "waiting"


BROKEN = [
    '{"at": 2, "run": "r1", "sta',
    "null",
    "[]",
    "7",
    '"text"',
    line(state="working", at="yesterday"),
    line(state="working", at=None),
    line(state=["list"]),
    line(state="working", reason={"a": 1}),
    line(state="working", source=3),
    line(state="dancing"),
    "[" * 50_000,
    "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
]


@pytest.mark.parametrize("broken", BROKEN, ids=range(len(BROKEN)))
def test_a_line_that_is_no_event_is_passed_over(file: Path, broken: str) -> None:
    """A write that was cut short, or a builder's own scribbling: the run directory is in its reach."""
    file.write_text(f"{line(state='idle')}\n{broken}\n")
    event = last_state(file, "r1")
    assert event is not None
    assert event.state == "idle"
    assert [event.state for event in load_events(file)] == ["idle"]


def test_the_conversation_that_was_spoken_in_last(file: Path) -> None:
    rows = [
        line(event="said", conversation_id="c1"),
        line("r2", event="said", conversation_id="c2"),
        line("r3", event="began", conversation_id="c3"),
        line("r3", event="said"),
    ]
    file.write_text("\n".join(rows) + "\n")
    assert last_conversation(load_events(file), "said") == "c2"
    assert last_conversation(load_events(file), "") == "c3"
    assert last_conversation(load_events(file), "never") is None


def test_how_it_ended(tmp_path: Path) -> None:
    file = tmp_path / "exit.json"
    file.write_text('{"version": 1, "run": "r1", "at": 3.5, "exit_code": null, "signal": "SIGKILL"}')
    ending = load_exit(file)
    assert ending is not None
    assert (ending.run, ending.at, ending.exit_code, ending.signal) == ("r1", 3.5, None, "SIGKILL")


@pytest.mark.parametrize("content", ["", "{", "[]", "7", "{}", '{"run": 1, "at": "x", "exit_code": "0"}'])
def test_no_ending_can_be_told(tmp_path: Path, content: str) -> None:
    file = tmp_path / "exit.json"
    assert load_exit(file) is None
    file.write_text(content)
    assert load_exit(file) is None
