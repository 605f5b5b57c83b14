"""A tmux client for a terminal that is not the caller's own: what a browser's terminal is attached with."""

from __future__ import annotations

from agent_farm.tmux.client import ask_tmux, tmux_argv

# What xterm.js can do beyond the terminfo entry of its TERM.
_FEATURES = "256,RGB,title,usstyle,extkeys"
TERM = "xterm-256color"


def viewer_argv(
    socket: str | None, session_id: str, *, read_only: bool, ignores_size: bool
) -> tuple[str, ...]:
    """`ignores_size`: the window keeps the size that other clients gave it."""
    program, *where = tmux_argv(socket)
    wanted = {"read-only": read_only, "ignore-size": ignores_size}
    flags = ",".join(name for name, on in wanted.items() if on)
    attach = ("attach-session", *(("-f", flags) if flags else ()), "-t", session_id)
    return (program, *where, "-u", "-T", _FEATURES, *attach)


def client_size(socket: str | None, session_id: str) -> tuple[int, int] | None:
    """The size at which a terminal shows the whole window, tmux's status lines included."""
    wanted = "#{window_width} #{window_height} #{status}"
    answer = ask_tmux(socket, (("display-message", "-p", "-t", session_id, wanted),))
    words = answer.out.split()
    if answer.code or len(words) != 3 or not (words[0].isdecimal() and words[1].isdecimal()):
        return None
    lines = {"off": 0, "on": 1}.get(words[2], int(words[2]) if words[2].isdecimal() else 1)
    return int(words[0]), int(words[1]) + lines
