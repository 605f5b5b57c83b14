"""The board's keys in one table: what each does, and why it may be disabled now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from agent_farm.builders.status import ALIVE, FINISHED
from agent_farm.operations.shown import BuilderShown

Chosen = Sequence[BuilderShown]
Refusal = Callable[[Chosen], str | None]


C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Key(Generic[C]):
    """`action` is a method of the screen or of its acts. `refuse` says why the key is disabled now, or None.

    `asks`: it opens a box, so what is typed meanwhile must not be taken for keys.
    """

    keys: str
    shown: str
    word: str
    action: str
    help: str
    refuse: Callable[[C], str | None] = lambda chosen: None
    asks: bool = False


def _some(chosen: Chosen) -> str | None:
    return None if chosen else "there is no builder under the cursor"


def _one(chosen: Chosen) -> str | None:
    return _some(chosen) or (None if len(chosen) == 1 else "it acts on one builder: unmark the others")


def _every(allowed: Callable[[BuilderShown], bool], why: str) -> Refusal:
    def refuse(chosen: Chosen) -> str | None:
        wrong = next((one for one in chosen if not allowed(one)), None)
        return _some(chosen) or (f"{wrong.id} {why} ({wrong.status.state})" if wrong else None)

    return refuse


def _both(*refusals: Refusal) -> Refusal:
    return lambda chosen: next((why for refuse in refusals if (why := refuse(chosen))), None)


def _runs(builder: BuilderShown) -> bool:
    return builder.status.state in ALIVE or builder.status.state == "unknown"


def _here(what: str) -> Refusal:
    """Refuses what needs the builder's files here, or cannot be done by a call to its machine."""

    def refuse(chosen: Chosen) -> str | None:
        there = next((one for one in chosen if one.host), None)
        return f"{there.id} is on {there.host}: {what}" if there else None

    return refuse


_running = _every(_runs, "does not run")
_ended = _every(lambda one: one.status.state in FINISHED, "runs")


# git's last answer may be a second old: the verbs themselves check whether there is something to land
_with_work = _every(
    lambda one: one.status.state not in ("queued", "creating", "preparing"), "has not started to work"
)

KEYS: tuple[Key[Chosen], ...] = (
    Key("enter", "⏎", "attach", "attach", "attach to its terminal", _both(_one, _running)),
    Key("a", "a", "answer", "answer", "answer its dialog with single keys", _both(_one, _running), asks=True),
    Key("m", "m", "message", "message", "send it a message", _running, asks=True),
    Key("n", "n", "next", "next", "go to the next builder that needs you"),
    Key("l", "l", "land", "land", "land its commits", _with_work, asks=True),
    Key("x", "x", "stop", "stop", "end its runtime, keep the work", _running, asks=True),
    Key("c", "c", "create", "create", "spawn a builder", asks=True),
    Key("R", "R", "review", "review", "review its commits, then the other results", _with_work),
    Key("t", "t", "test", "check", "run the checks on its work merged into the target", _with_work),
    Key("r", "r", "resume", "resume", "continue its conversation", _ended),
    Key("p", "p", "prune", "prune", "remove it, after showing what would be lost", _some, asks=True),
    Key("u", "u", "restore", "restore", "bring back a removed builder", asks=True),
    Key(
        "e", "e", "editor", "edit", "open its worktree in $EDITOR", _both(_one, _here("its files are there"))
    ),
    Key("exclamation_mark", "!", "shell", "shell", "a shell in its worktree", _one),
    Key("y", "y", "path", "copy_path", "copy the path of its worktree", _one),
    Key("b", "b", "branch", "copy_branch", "copy its branch", _one),
    Key("tab", "⇥", "view", "view", "screen, diff, log or conflicts of it"),
    Key("v", "v", "whole", "whole", "show the view on the whole screen, or go back"),
    Key("space", "␣", "mark", "mark", "mark it, to act on several", _some),
    Key("asterisk", "*", "all", "mark_all", "mark or unmark its whole group", _some),
    Key("slash", "/", "filter", "filter", "show only builders that match"),
    Key("o", "o", "order", "order", "order by need, age or task"),
    Key("question_mark", "?", "help", "help", "what the keys do", asks=True),
    Key("q", "q", "quit", "quit", "leave the board; builders keep running"),
)
MOVES = "↑ ↓ j k move · g G first, last · ← → PgUp PgDn scroll the view · Esc unmark, show all"
