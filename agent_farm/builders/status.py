"""A builder's state in one word, with its source and its age. Never a guess."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from agent_farm.builders.events import Event, Exit, Report
from agent_farm.builders.record import BuilderRecord

State = Literal[
    "queued",
    "creating",
    "preparing",
    "working",
    "waiting",
    "limited",
    "idle",
    "interrupted",
    "exited",
    "failed",
    "stopped",
    "lost",
    "unknown",
]
STATES: tuple[State, ...] = get_args(State)
FINISHED = frozenset({"exited", "stopped", "failed", "lost"})
ALIVE = frozenset({"preparing", "working", "waiting", "limited", "idle", "interrupted"})
BUSY = ("preparing", "working")
# States that need a person, most urgent first.
NEEDS_YOU = ("waiting", "interrupted", "failed", "lost", "unknown")
CUT_SHORT = "its turn was cut short"
QUEUED_FOR_BUILD = "queued for build"


class Status(Struct, frozen=True):
    """`source` is hook, launcher, process or screen; `at` is seconds since the epoch, or None.

    `event` is the report that the state comes from, if there is one. `cut_short` says that the builder ended,
    or came back, in the middle of a turn.
    """

    state: str
    source: str
    at: float | None = None
    exit_code: int | None = None
    reason: str | None = None
    event: str | None = None
    cut_short: bool = False

    @property
    def is_finished(self) -> bool:
        return self.state in FINISHED


class PaneView(Struct, frozen=True):
    """tmux's view of one builder: `known` is False if tmux could not be asked."""

    known: bool
    exists: bool = False
    dead: bool = False
    why: str | None = None


def judge(record: BuilderRecord, pane: PaneView, report: Report, exit: Exit | None, *, now: float) -> Status:
    """Combines what was decided, what was reported and what exists."""
    status = _judge(record, pane, report.state, exit, now)
    return _with_open_turn(status, report.open, record.run) if report.open else status


def _judge(
    record: BuilderRecord, pane: PaneView, event: Event | None, exit: Exit | None, now: float
) -> Status:
    if record.state == "queued":
        return Status("queued", "process", datetime.fromisoformat(record.created_at).timestamp())
    if record.state == "creating":
        return Status("creating", "process", at=now)
    if record.state == "stopped" and not pane.exists:
        return Status("stopped", "launcher", reason=record.reason)
    if record.state == "failed":
        return Status("failed", "launcher", reason=record.reason)
    if exit is not None and exit.run == record.run:
        return _ended(exit, event)
    if event is not None and event.state == "failed":
        return Status("failed", event.source, event.at, reason=event.reason)
    if not pane.known:
        return Status("unknown", "process", at=now, reason=pane.why)
    if not pane.exists:
        return Status("lost", "process", at=now, reason="its tmux session is gone")
    if pane.dead:
        return Status("lost", "process", at=now, reason="its launcher was killed")
    if event is None:
        return Status("preparing", "process", at=now)
    return Status(str(event.state), event.source, event.at, reason=event.reason, event=event.event)


def _with_open_turn(status: Status, turn: Event, run: str) -> Status:
    """Marks a builder that stopped or died in the middle of a turn, even once it is back."""
    if status.state in ("stopped", "lost", "failed"):
        why = f"{status.reason}; {CUT_SHORT}" if status.reason else CUT_SHORT
        return replace(status, cut_short=True, reason=why)
    if status.state == "idle" and turn.run != run:
        asked = f" while it waited: {turn.reason}" if turn.state == "waiting" and turn.reason else ""
        return replace(status, state="interrupted", cut_short=True, reason=CUT_SHORT + asked)
    return status


def _ended(exit: Exit, event: Event | None) -> Status:
    if exit.exit_code == 0:
        return Status("exited", "launcher", exit.at, exit_code=0)
    why = f"killed by {exit.signal}" if exit.signal else f"exit code {exit.exit_code}"
    if event is not None and event.state == "failed" and event.reason:
        why = event.reason
    return Status("failed", "launcher", exit.at, exit_code=exit.exit_code, reason=why)
