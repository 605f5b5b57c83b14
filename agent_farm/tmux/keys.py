"""Presses single keys in a running program, as a person would to answer a dialog.

A key is a name from a fixed set, or one character: tmux would type any other word as text, and text goes
through `deliver`, which checks that it was submitted. Nobody here can tell what a key does.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from agent_farm.disk import file_lock
from agent_farm.errors import LockTaken, UsageError, nearest
from agent_farm.tmux.deliverable import Delivery
from agent_farm.tmux.foreground import why_not_the_runtime
from agent_farm.tmux.pane_input import INPUT_FACTS, NotAnswered, PaneGone, read_input
from agent_farm.tmux.tmux_process import call_tmux

NAMED = ("Enter", "Escape", "Tab", "Up", "Down", "Left", "Right", "Space", "BSpace", "C-c")
# Keys that arrive at once are read as one sequence: Escape and a letter as Alt, a burst as a paste.
_APART_SECONDS = 0.15
_LOCK_SECONDS = 60.0


def parse_keys(text: str) -> tuple[str, ...]:
    """The keys, separated by spaces; UsageError names the first that is not a key."""
    keys = tuple(text.split())
    if not keys:
        raise UsageError("--keys is empty", why=_known(), hint='af send ID --keys "Down Enter"')
    for key in keys:
        if key in NAMED or (len(key) == 1 and key.isprintable()):
            continue
        close = nearest(key.lower(), [name.lower() for name in NAMED])
        meant = next((name for name in NAMED if name.lower() == close), None)
        raise UsageError(
            f"af cannot press the key {key!r}",
            why=f"Did you mean {meant}?" if meant else _known(),
            hint="af send --help",
        )
    return keys


def press(
    socket: str | None, pane_id: str, keys: Sequence[str], *, lock: Path, runtime_pid: int | None = None
) -> Delivery:
    """Press one key after another, as long as the runtime reads them. `lock` is the pane's own."""
    try:
        with file_lock(lock, wait=_LOCK_SECONDS):
            return _pressed(socket, pane_id, keys, runtime_pid)
    except LockTaken:
        return Delivery("held", "a message is being delivered")


def _pressed(socket: str | None, pane_id: str, keys: Sequence[str], runtime_pid: int | None) -> Delivery:
    for count, key in enumerate(keys):
        if count:
            time.sleep(_APART_SECONDS)
        reason = _why_not(socket, pane_id, runtime_pid)
        if reason is None:
            answer = call_tmux(socket, (("send-keys", "-t", pane_id, *_words(key)),))
            reason = f"tmux did not press {key}: {answer.err}" if answer.code else None
        if reason is not None:
            done = f"after {' '.join(keys[:count])}: " if count else ""
            return Delivery("failed" if count else "held", f"{done}{reason}")
    return Delivery("pressed", " ".join(keys))


def _why_not(socket: str | None, pane_id: str, runtime_pid: int | None) -> str | None:
    """Why a key would not reach the runtime, or None. Leaves copy mode, which would take the key."""
    try:
        pane = read_input(call_tmux(socket, (("display-message", "-p", "-t", pane_id, INPUT_FACTS),)))
    except (NotAnswered, PaneGone) as error:
        return str(error)
    if pane.blocked:
        return pane.blocked
    if pane.in_mode:
        call_tmux(socket, (("copy-mode", "-q", "-t", pane_id),))
    return why_not_the_runtime(pane.command, pane.pid, runtime_pid)


def _words(key: str) -> tuple[str, ...]:
    """An ASCII character is given by its number, because `;` and `-` mean something to tmux."""
    if key in NAMED:
        return (key,)
    return ("-H", f"{ord(key):x}") if key.isascii() else ("-l", key)


def _known() -> str:
    return f"Keys: {', '.join(NAMED)}, or one character."
