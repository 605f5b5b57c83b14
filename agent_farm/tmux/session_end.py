"""Ending builders' sessions, and knowing that nothing of them is left."""

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
    session_ids: Collection[str],
    *,
    seconds: float,
    step: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, AgentFarmError]:
    """Sessions, panes and launchers are gone when this returns; those that are not are named, with why.

    All are told to end before one is waited for; `step` is told how many have.
    """
    before = _asked(socket)
    panes = [pane for pane in before.panes.values() if pane.session_id in session_ids]
    problems = _told(socket, list(session_ids))
    there = _identities(_asked(socket)) if panes else set()
    for pane in panes:
        if _identity(pane) in there and pane.session_id not in problems:  # a session of its group shows it
            call_tmux(socket, (("kill-pane", "-t", pane.pane_id),))
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


def _told(socket: str | None, session_ids: list[str]) -> dict[str, AgentFarmError]:
    """tmux stops at the first command that fails, where a session is gone: then each is told by itself."""
    if not call_tmux(socket, [("kill-session", "-t", id) for id in session_ids]).code:
        return {}
    problems = {}
    for id in session_ids:
        answer = call_tmux(socket, (("kill-session", "-t", id),))
        if answer.code and not answer.gone:
            problems[id] = AgentFarmError(
                f"The tmux session {id} could not be ended", why=answer.err, hint="af status"
            )
    return problems


def _asked(socket: str | None) -> Snapshot:
    snapshot = read_snapshot(ask_tmux(socket, (LIST_PANES,)))
    if not snapshot.known:
        raise AgentFarmError("tmux did not list its panes", why=snapshot.reason, hint="af doctor")
    return snapshot


def _identity(pane: PaneFacts) -> tuple[str, int]:
    """A server that has begun since gives the same ids to others: they are not to be ended, or waited for."""
    return pane.pane_id, pane.pid


def _identities(snapshot: Snapshot) -> set[tuple[str, int]]:
    return {_identity(pane) for pane in snapshot.panes.values()}


def _left_of(socket: str | None, panes: Collection[PaneFacts]) -> dict[str, list[str]]:
    """By session. The launcher ends its runtime before it ends itself: its process id stands for both."""
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
