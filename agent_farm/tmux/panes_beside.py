"""What runs in a builder's session beside the builder, in windows and panes that somebody has opened."""

from __future__ import annotations

from agent_farm.tmux.foreground import foreground_group
from agent_farm.tmux.snapshot import SEPARATOR, PaneFacts
from agent_farm.tmux.tmux_process import ask_tmux

_FIELDS = (
    "#{pane_id}", "#{pane_pid}", "#{pane_dead}", "#{?pane_start_command,started,}", "#{pane_current_command}",
)  # fmt: skip


def program_beside(socket: str | None, pane: PaneFacts) -> str | None:
    """The name of one; None if there are only shells that wait."""
    if pane.alone:
        return None
    words = ("list-panes", "-s", "-t", pane.session_id, "-F", SEPARATOR.join(_FIELDS))
    for line in ask_tmux(socket, (words,)).out.split("\n"):
        parts = line.split(SEPARATOR, len(_FIELDS) - 1)
        if len(parts) == len(_FIELDS) and parts[0] != pane.pane_id and parts[2] != "1":
            started, command = parts[3:]
            if started or foreground_group(int(parts[1])) not in (None, int(parts[1])):
                return command
    return None
