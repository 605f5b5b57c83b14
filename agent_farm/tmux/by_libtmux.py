"""What is seldom asked of tmux, through libtmux.

Importing libtmux takes longer than most commands of `af`, so it is imported here, inside the functions, and
nowhere else. Objects are made from ids, not looked up: libtmux's listings read names it cannot parse in a
C locale, and are empty when tmux cannot be asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agent_farm.errors import AgentFarmError, ToolMissing
from agent_farm.tmux.tmux_process import install_command

if TYPE_CHECKING:
    from libtmux import Pane, Server, Session


def _server(socket: str | None) -> Server:
    from libtmux import Server

    if not socket:
        return Server()
    return Server(socket_path=socket) if "/" in socket else Server(socket_name=socket)


def _pane(socket: str | None, pane_id: str) -> Pane:
    from libtmux import Pane

    return Pane(server=_server(socket), pane_id=pane_id)


def _session(socket: str | None, session_id: str) -> Session:
    from libtmux import Session

    return Session(server=_server(socket), session_id=session_id)


@contextmanager
def _as_our_errors(what: str) -> Iterator[None]:
    from libtmux.exc import LibTmuxException, TmuxCommandNotFound

    try:
        yield
    except TmuxCommandNotFound as error:
        raise ToolMissing("tmux is not installed", hint=install_command()) from error
    except LibTmuxException as error:
        raise AgentFarmError(what, why=str(error), hint="af status") from error


def capture_history(socket: str | None, pane_id: str, lines: int, *, escapes: bool) -> str:
    """The screen and up to `lines` that have scrolled off it."""
    with _as_our_errors(f"The pane {pane_id} cannot be read"):
        pane = _pane(socket, pane_id)
        captured = pane.cmd("display-message", "-p", "#{pane_id}")
        _require_quiet(captured.stderr, expected=captured.stdout == [pane_id])
        text = pane.capture_pane(start=-lines, escape_sequences=escapes)
        return "\n".join(text) + "\n"


def end_session(socket: str | None, session_id: str) -> None:
    """Gone afterwards; one that was gone before is fine."""
    with _as_our_errors(f"The tmux session {session_id} could not be ended"):
        from libtmux.exc import LibTmuxException

        try:
            _session(socket, session_id).kill()
        except LibTmuxException as error:
            if not _says_gone(str(error)):
                raise


def _says_gone(message: str) -> bool:
    return any(
        words in message
        for words in ("can't find session", "no server running", "error connecting to", "no current target")
    )


def _require_quiet(stderr: Sequence[str], *, expected: bool = True) -> None:
    from libtmux.exc import LibTmuxException

    if stderr or not expected:
        raise LibTmuxException(" ".join(stderr) or "it is gone")
