"""Ends builders' sessions, and makes sure that nothing of them is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from agent_farm.errors import AgentFarmError
from agent_farm.tmux.foreground import is_running
from agent_farm.tmux.snapshot import LIST_PANES, PaneFacts, Snapshot, read_snapshot
from agent_farm.tmux.tmux_process import ask_tmux, call_tmux

_POLL_SECONDS = 0.02


def kill_sessions(
    socket: str | None,
    panes: Collection[PaneFacts],
    *,
    seconds: float,
    step: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, AgentFarmError]:
    """When this returns, the sessions of these panes and their launchers are gone, or in the result with the
    reason.

    All are told to end before any is waited for; `step` is called with how many have ended.
    """
    problems = _told(socket, panes)
    shown = _identities(_asked(socket)) if panes else set()
    if elsewhere := [pane for pane in panes if _identity(pane) in shown and pane.session_id not in problems]:
        call_tmux(socket, [_if_still(pane, f"kill-pane -t {pane.pane_id}") for pane in elsewhere])
    deadline = time.monotonic() + seconds
    waiting = [pane for pane in panes if pane.session_id not in problems]
    total = len(waiting)
    step(0, total)
    while waiting:
        left = _left_of(socket, waiting)
        waiting = [pane for pane in waiting if pane.session_id in left]
        if waiting and time.monotonic() > deadline:
            why = f"still there after {seconds:g} s: "
            return problems | {
                id: AgentFarmError(
                    f"The tmux session {id} was ended, but not all of it is gone",
                    why=why + ", ".join(left[id]),
                    hint="af doctor",
                )
                for id in left
            }
        if waiting:
            step(total - len(waiting), total)
            time.sleep(_POLL_SECONDS)
    return problems


def _told(socket: str | None, panes: Collection[PaneFacts]) -> dict[str, AgentFarmError]:
    """tmux stops at the first command that fails because a session is gone; then each session is ended in a
    call of its own.
    """
    ends = {pane.session_id: _if_still(pane, f"kill-session -t {pane.session_id}") for pane in panes}
    if not call_tmux(socket, list(ends.values())).code:
        return {}
    problems = {}
    for id, end in ends.items():
        answer = call_tmux(socket, (end,))
        if answer.code and not answer.gone:
            problems[id] = AgentFarmError(
                f"The tmux session {id} could not be ended", why=answer.err, hint="af status"
            )
    return problems


def _if_still(pane: PaneFacts, command: str) -> tuple[str, ...]:
    """Lets tmux compare the pid: a server that has started since uses the same ids for others."""
    return ("if-shell", "-F", "-t", pane.pane_id, f"#{{==:#{{pane_pid}},{pane.pid}}}", command)


def _asked(socket: str | None) -> Snapshot:
    snapshot = read_snapshot(ask_tmux(socket, (LIST_PANES,)))
    if not snapshot.known:
        raise AgentFarmError("tmux did not list its panes", why=snapshot.reason, hint="af doctor")
    return snapshot


def _identity(pane: PaneFacts) -> tuple[str, int]:
    """Includes the pid, because a server that has started since uses the same ids for other panes."""
    return pane.pane_id, pane.pid


def _identities(snapshot: Snapshot) -> set[tuple[str, int]]:
    return {_identity(pane) for pane in snapshot.panes.values()}


def _left_of(socket: str | None, panes: Collection[PaneFacts]) -> dict[str, list[str]]:
    """What is left, by session. A launcher ends its runtime before itself, so its process stands for both."""
    left: dict[str, list[str]] = {}
    for pane in panes:
        if not pane.dead and is_running(pane.pid):
            left.setdefault(pane.session_id, []).append(f"process {pane.pid}")
    if left:
        return left
    there = _identities(_asked(socket))
    for pane in panes:
        if _identity(pane) in there:
            left.setdefault(pane.session_id, []).append(pane.pane_id)
    return left
