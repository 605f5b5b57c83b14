"""Reading what launchers and hooks wrote, whatever a crash or a builder left in the files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agent_farm.builders.events import Exit, Report, last_conversation, load_events, read_report
from agent_farm.documents import load_if_whole


def line(run: str = "r1", state: object = "working", **more: object) -> str:
    event = {"at": 1.5, "run": run, "source": "hook", "event": "Stop", "state": state, "reason": None}
    return json.dumps({**event, "conversation_id": None, **more})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def test_the_newest_state_of_the_run(file: Path) -> None:
    file.write_text("\n".join([line(), line(state="idle", reason="x"), line(state=None), line("r0")]) + "\n")
    event = read_report(file, "r1").state
    assert event is not None
    assert (event.state, event.source, event.at, event.reason) == ("idle", "hook", 1.5, "x")


def test_no_file_and_no_state(file: Path) -> None:
    assert read_report(file, "r1").state is None
    assert load_events(file) == []
    file.write_text(line("other") + "\n")
    assert read_report(file, "r1").state is None


def test_a_state_before_a_long_tail_of_others_is_found(file: Path) -> None:
    noise = [line(state=None, detail={"text": "x" * 500}) for _ in range(200)]
    file.write_text("\n".join([line(state="waiting"), *noise]) + "\n")
    event = read_report(file, "r1").state
    assert event is not None
    assert event.state == "waiting"


def test_a_reason_with_half_a_character_and_what_was_written_down_last(file: Path) -> None:
    file.write_text("\n".join([line(reason="Allow \udcff?"), line("r0", state=None, at=3.0)]) + "\n")
    report = read_report(file, "r1")
    assert report.state is not None
    assert (report.state.reason, report.last) == ("Allow \udcff?", 3.0)


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
    event = read_report(file, "r1").state
    assert event is not None
    assert event.state == "idle"
    assert [event.state for event in load_events(file)] == ["idle"]


@pytest.mark.parametrize("id", ["--yolo", "a\0b", "a\nb"])
def test_a_conversation_that_would_be_an_option_is_no_event(file: Path, id: str) -> None:
    """A resume names it to the CLI."""
    file.write_text(f"{line(conversation_id='c1')}\n{line(conversation_id=id)}\n")
    assert last_conversation(load_events(file), "Stop") == "c1"


def started(run: str) -> str:
    return line(run, event="started", source="launcher")


UP = {"event": "SessionStart", "state": "idle"}
SAID = {"event": "UserPromptSubmit", "state": "working"}
ASKED = {"event": "ask_architect", "state": "waiting", "reason": "Which table?"}
DONE = {"event": "Stop", "state": "idle"}

TURNS: list[tuple[str, list[str], bool]] = [
    ("ended", [started("r1"), line("r1", **SAID), line("r1", **DONE)], False),
    ("runs", [started("r1"), line("r1", **SAID)], True),
    ("killed before the prompt", [started("r1")], True),
    ("killed, and back", [line("r0", **SAID), started("r1"), line("r1", **UP)], True),
    ("killed twice", [line("r0", **SAID), started("rx"), line("rx", **UP), started("r1"), line("r1", **UP)],
     True),
    ("back, and a turn since", [line("r0", **SAID), started("r1"), line("r1", **UP), line("r1", **SAID),
                                line("r1", **DONE)], False),
    ("no prompt", [started("r1"), line("r1", **UP)], False),
    ("ended, and back", [line("r0", **SAID), line("r0", **DONE), started("r1"), line("r1", **UP)], False),
    ("left by a person", [line("r0", **SAID), line("r0", event="exited", state="exited"), started("r1")],
     False),
    ("crashed", [line("r0", **SAID), line("r0", event="failed", state="failed"), started("r1")], True),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "is_open"), [turn[1:] for turn in TURNS], ids=[turn[0] for turn in TURNS])
def test_a_turn_is_open_until_something_ends_it(file: Path, rows: list[str], is_open: bool) -> None:
    file.write_text("\n".join(rows) + "\n")
    assert (read_report(file, "r1").open is not None) == is_open


def test_a_question_stays_open_over_a_restart_until_the_next_turn(file: Path) -> None:
    rows = [line("r0", **SAID), line("r0", **ASKED), line("r0", **DONE), started("r1"), line("r1", **UP)]
    file.write_text("\n".join(rows) + "\n")
    report = read_report(file, "r1").state
    assert report is not None
    assert (report.state, report.reason) == ("waiting", "Which table?")
    file.write_text("\n".join([*rows, line("r1", **SAID), line("r1", **DONE)]) + "\n")
    report = read_report(file, "r1").state
    assert report is not None
    assert report.state == "idle"


@pytest.mark.parametrize("kind", ["fifo", "link", "directory"])
def test_what_is_no_file_is_not_read(file: Path, kind: str) -> None:
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "link":
        file.symlink_to("/dev/zero")
    else:
        file.mkdir()
    assert read_report(file, "r1") == Report()


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
    ending = load_if_whole(file, Exit)
    assert ending is not None
    assert (ending.run, ending.at, ending.exit_code, ending.signal) == ("r1", 3.5, None, "SIGKILL")


@pytest.mark.parametrize("content", ["", "{", "[]", "7", "{}", '{"run": 1, "at": "x", "exit_code": "0"}'])
def test_no_ending_can_be_told(tmp_path: Path, content: str) -> None:
    file = tmp_path / "exit.json"
    assert load_if_whole(file, Exit) is None
    file.write_text(content)
    assert load_if_whole(file, Exit) is None
