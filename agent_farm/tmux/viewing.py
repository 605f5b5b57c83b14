"""A tmux client for a terminal that is not the caller's own, such as one in a browser."""

from __future__ import annotations

from agent_farm.tmux.tmux_process import ask_tmux, call_tmux, tmux_argv

# What xterm.js can do that its terminfo entry does not say.
_FEATURES = "256,RGB,title,usstyle,extkeys"
TERM = "xterm-256color"
_STATUS_LINES = "#{?#{==:#{status},on},1,#{?#{==:#{status},off},0,#{status}}}"


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
    """The size at which a terminal shows the whole window, including tmux's status lines."""
    known = _numbers(
        socket,
        session_id,
        f"#{{window_width}} #{{window_height}} {_STATUS_LINES}",
    )
    return (known[0], known[1] + known[2]) if known else None


def window_size(socket: str | None, session_id: str) -> tuple[int, int] | None:
    known = _numbers(socket, session_id, "#{window_width} #{window_height} 0")
    return (known[0], known[1]) if known else None


def give_back_size(socket: str | None, session_id: str, size: tuple[int, int]) -> None:
    """For a window that nobody looks at any more; whoever attaches next sets the size as usual."""
    known = _numbers(socket, session_id, "#{window_width} #{window_height} #{session_attached}")
    if known is None or known[2] or known[:2] == size:
        return
    columns, rows = map(str, size)
    call_tmux(
        socket,
        (
            ("resize-window", "-t", session_id, "-x", columns, "-y", rows),
            ("set-option", "-w", "-u", "-t", session_id, "window-size"),  # resize-window set it to `manual`
        ),
    )


def _numbers(socket: str | None, session_id: str, wanted: str) -> tuple[int, int, int] | None:
    answer = ask_tmux(socket, (("display-message", "-p", "-t", session_id, wanted),))
    words = answer.out.split()
    if answer.code or len(words) != 3 or not all(word.isdecimal() for word in words):
        return None
    return int(words[0]), int(words[1]), int(words[2])
