"""Shows in the session's status line how to return to the board, while a person is attached from there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agent_farm.tmux.tmux_process import call_tmux


@contextmanager
def show_way_back(socket: str | None, session_id: str, *, switched: bool) -> Iterator[None]:
    """`switched`: the board keeps running in another session of the same client; `prefix L` returns to it."""
    key = "L" if switched else "d"
    option = ("-t", session_id, "status-right")
    call_tmux(socket, (("set-option", *option, f" back to the board: #{{prefix}} {key} "),))
    try:
        yield
    finally:
        if not switched:
            call_tmux(socket, (("set-option", "-u", *option),))
