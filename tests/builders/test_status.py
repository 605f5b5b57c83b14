"""One word for how a builder is, and where it comes from."""

from __future__ import annotations

from typing import Any

import pytest

from agent_farm.builders.events import Event, Exit, Report
from agent_farm.builders.status import ALIVE, FINISHED, STATES, PaneView, judge
from tests.builders.test_registry import a_record

RUN = "0123456789ab"
ALIVE_PANE = PaneView(known=True, exists=True)
DEAD_PANE = PaneView(known=True, exists=True, dead=True)
NO_PANE = PaneView(known=True)
UNASKED = PaneView(known=False, why="tmux did not answer")


def event(state: str, source: str = "hook", reason: str | None = None) -> Event:
    return Event(5.0, RUN, source, "x", state, reason, None)


def ended(code: int | None, signal: str | None = None, run: str = RUN) -> Exit:
    return Exit(run, 9.0, code, signal)


CASES: list[tuple[str, dict[str, Any], PaneView, Event | None, Exit | None, tuple[str, str, str | None]]] = [
    ("reserved", {"state": "creating"}, NO_PANE, None, None, ("creating", "process", None)),
    ("hook", {}, ALIVE_PANE, event("working"), None, ("working", "hook", None)),
    ("waits", {}, ALIVE_PANE, event("waiting", reason="edit?"), None, ("waiting", "hook", "edit?")),
    ("launcher", {}, ALIVE_PANE, event("preparing", "launcher"), None, ("preparing", "launcher", None)),
    ("no-event", {}, ALIVE_PANE, None, None, ("preparing", "process", None)),
    ("exit", {}, ALIVE_PANE, event("exited", "launcher"), ended(0), ("exited", "launcher", None)),
    ("exit-code", {}, ALIVE_PANE, event("idle"), ended(3), ("failed", "launcher", "exit code 3")),
    ("killed", {}, ALIVE_PANE, event("idle"), ended(None, "SIGKILL"),
     ("failed", "launcher", "killed by SIGKILL")),
    ("exit-then-gone", {}, NO_PANE, event("exited", "launcher"), ended(0), ("exited", "launcher", None)),
    ("exit-of-another-run", {}, ALIVE_PANE, event("working"), ended(0, run="old"), ("working", "hook", None)),
    ("setup", {}, ALIVE_PANE, event("failed", "launcher", "setup exited 2"), None,
     ("failed", "launcher", "setup exited 2")),
    ("gone", {}, NO_PANE, event("working"), None, ("lost", "process", "its tmux session is gone")),
    ("launcher-killed", {}, DEAD_PANE, event("working"), None,
     ("lost", "process", "its launcher was killed")),
    ("unasked", {}, UNASKED, event("working"), None, ("unknown", "process", "tmux did not answer")),
    ("unasked-but-ended", {}, UNASKED, event("exited"), ended(0), ("exited", "launcher", None)),
    ("stopped", {"state": "stopped", "reason": "by af stop"}, NO_PANE, event("working"), None,
     ("stopped", "launcher", "by af stop")),
    ("failed", {"state": "failed", "reason": "why"}, NO_PANE, None, None, ("failed", "launcher", "why")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "pane", "last", "exit", "wanted"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_status(
    changes: dict[str, Any],
    pane: PaneView,
    last: Event | None,
    exit: Exit | None,
    wanted: tuple[str, str, str | None],
) -> None:
    status = judge(a_record(**changes), pane, Report(last), exit, now=100.0)
    assert (status.state, status.source, status.reason) == wanted
    assert status.is_finished == (wanted[0] in {"exited", "stopped", "failed", "lost"})


def test_a_stopped_builder_is_stopped_also_while_tmux_cannot_be_asked() -> None:
    """It was a definite act of the user; a server that does not answer does not undo it."""
    record = a_record(state="stopped", reason="by af stop")
    assert judge(record, UNASKED, Report(event("working")), None, now=1.0).state == "stopped"


def turn(run: str = RUN, state: str = "working", reason: str | None = None) -> Event:
    return Event(4.0, run, "hook", "x", state, reason, None)


SHORT = "its turn was cut short"
OPEN: list[tuple[str, dict[str, Any], PaneView, Event, Event, tuple[str, str | None, bool]]] = [
    ("runs", {}, ALIVE_PANE, event("working"), turn(), ("working", None, False)),
    ("back", {}, ALIVE_PANE, event("idle"), turn("old"), ("interrupted", SHORT, True)),
    ("at a dialog", {}, ALIVE_PANE, event("idle"), turn("old", "waiting", "Bash: rm"),
     ("interrupted", f"{SHORT} while it waited: Bash: rm", True)),
    ("stopped", {"state": "stopped", "reason": "by af stop"}, NO_PANE, event("working"), turn(),
     ("stopped", f"by af stop; {SHORT}", True)),
    ("lost", {}, NO_PANE, event("working"), turn(), ("lost", f"its tmux session is gone; {SHORT}", True)),
    ("on the screen", {}, ALIVE_PANE, event("idle"), turn(), ("idle", None, False)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "pane", "last", "turn", "wanted"), [case[1:] for case in OPEN], ids=[case[0] for case in OPEN]
)
def test_an_open_turn(
    changes: dict[str, Any],
    pane: PaneView,
    last: Event,
    turn: Event,
    wanted: tuple[str, str | None, bool],
) -> None:
    status = judge(a_record(**changes), pane, Report(last, turn), None, now=100.0)
    assert (status.state, status.reason, status.cut_short) == wanted


def test_the_states_are_those_of_the_design() -> None:
    at_work = "queued creating preparing working waiting limited idle interrupted"
    assert " ".join(STATES) == f"{at_work} exited failed stopped lost unknown"
    assert frozenset({"exited", "stopped", "failed", "lost"}) == FINISHED
    assert FINISHED.isdisjoint(ALIVE)
