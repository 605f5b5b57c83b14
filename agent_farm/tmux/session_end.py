"""Ending a builder's session, and knowing that nothing of it is left."""

from __future__ import annotations

import time

from agent_farm.errors import AgentFarmError
from agent_farm.tmux.foreground import is_running
from agent_farm.tmux.snapshot import LIST_PANES, PaneFacts, Snapshot, read_snapshot
from agent_farm.tmux.tmux_process import ask_tmux, call_tmux

_POLL_SECONDS = 0.02


def kill_session(socket: str | None, session_id: str, *, seconds: float) -> None:
    """Session, panes and launchers are gone when this returns; AgentFarmError with what is left otherwise."""
    panes = _panes_of(_asked(socket), session_id)
    answer = call_tmux(socket, (("kill-session", "-t", session_id),))
    if answer.code and not answer.gone:
        raise AgentFarmError(
            f"The tmux session {session_id} could not be ended", why=answer.err, hint="af status"
        )
    for pane in panes:
        if pane.pane_id in _pane_ids(_asked(socket)):  # another session of its group still shows it
            call_tmux(socket, (("kill-pane", "-t", pane.pane_id),))
    deadline = time.monotonic() + seconds
    while left := _left_of(socket, session_id, panes):
        if time.monotonic() > deadline:
            raise AgentFarmError(
                f"The tmux session {session_id} was ended, but not all of it is gone",
                why=f"still there after {seconds:g} s: {', '.join(left)}",
                hint="af doctor",
            )
        time.sleep(_POLL_SECONDS)


def _asked(socket: str | None) -> Snapshot:
    snapshot = read_snapshot(ask_tmux(socket, (LIST_PANES,)))
    if not snapshot.known:
        raise AgentFarmError("tmux did not list its panes", why=snapshot.reason, hint="af doctor")
    return snapshot


def _panes_of(snapshot: Snapshot, session_id: str) -> tuple[PaneFacts, ...]:
    return tuple(pane for pane in snapshot.panes.values() if pane.session_id == session_id)


def _pane_ids(snapshot: Snapshot) -> set[str]:
    return {pane.pane_id for pane in snapshot.panes.values()}


def _left_of(socket: str | None, session_id: str, panes: tuple[PaneFacts, ...]) -> list[str]:
    """The launcher ends its runtime before it ends itself, so its process id stands for both."""
    left = [f"process {pane.pid}" for pane in panes if not pane.dead and is_running(pane.pid)]
    if left:
        return left
    snapshot = _asked(socket)
    return [pane.pane_id for pane in snapshot.panes.values() if pane.session_id == session_id]
