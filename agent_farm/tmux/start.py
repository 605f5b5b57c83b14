"""Starts a session for a builder, whatever the user's tmux.conf does to new sessions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from agent_farm.errors import AgentFarmError, ToolMissing
from agent_farm.tmux.tmux_process import TmuxAnswer, call_tmux
from agent_farm.tmux.usable import is_too_old, server_is_too_old, tmux_problem

_NAME = re.compile(r"af-[A-Za-z0-9_-]+")
_WINDOW = re.compile(r"[A-Za-z0-9_-]+")
_ADDRESS = re.compile(r"(\$\d+) (%\d+) (\S+)")


class PaneAddress(Struct, frozen=True):
    """Ids that no hook and no rename can change."""

    session_id: str
    pane_id: str


def start_session(
    socket: str | None, name: str, argv: Sequence[str], *, window: str, cwd: Path, columns: int, rows: int
) -> PaneAddress:
    if not _NAME.fullmatch(name) or not _WINDOW.fullmatch(window):
        raise ValueError(f"not names of ours: {name!r}, {window!r}")
    if len(argv) < 2:
        raise ValueError("tmux hands a single word to a shell")
    answer = _started(socket, name, window, argv, cwd, columns, rows)
    address = _read_address(socket, answer, name)
    if answer.out.split()[3:] != ["session-kept", "pane-kept"]:
        _keep_by_ids(socket, address, name)
    return address


def _started(
    socket: str | None, name: str, window: str, argv: Sequence[str], cwd: Path, columns: int, rows: int
) -> TmuxAnswer:
    commands = (
        ("new-session", "-d", "-E", "-P", "-F", "#{session_id} #{pane_id} #{version}", "-s", name,
         "-n", window, "-x", str(columns), "-y", str(rows), "--", *argv),
        *_keep_newest(name),
    )  # fmt: skip
    return call_tmux(socket, commands, cwd=cwd, patient=True)


def _keep_newest(name: str) -> tuple[tuple[str, ...], ...]:
    """Runs in the same call, before a user's `destroy-unattached on` can end the session.

    A hook may have renamed it already, and its ids are not known yet; but a command without a target acts on
    the session that was active last, the new one. The condition makes sure of that, so that no other session
    is ever touched.
    """
    ours = f"* {name} *"
    return (
        ("if-shell", "-F", f"#{{m:{ours},#{{W:#{{P:#{{pane_start_command}} }}}}}}",
         "set-option destroy-unattached off ; display-message -p session-kept"),
        ("if-shell", "-F", f"#{{m:{ours},#{{pane_start_command}}}}",
         "set-option -p remain-on-exit on ; display-message -p pane-kept"),
    )  # fmt: skip


def _keep_by_ids(socket: str | None, address: PaneAddress, name: str) -> None:
    answer = call_tmux(
        socket,
        (
            ("set-option", "-t", address.session_id, "destroy-unattached", "off"),
            ("set-option", "-p", "-t", address.pane_id, "remain-on-exit", "on"),
        ),
    )
    if answer.code:
        raise AgentFarmError(
            f"The tmux session {name} ended as soon as it started",
            why=answer.err,
            hint="tmux show-hooks -g && tmux show-options -g destroy-unattached",
        )


def _read_address(socket: str | None, answer: TmuxAnswer, name: str) -> PaneAddress:
    found = _ADDRESS.match(answer.out)
    if found and is_too_old(found[3]):
        call_tmux(socket, (("kill-session", "-t", found[1]),))
        raise ToolMissing(
            "tmux cannot be used", why=tmux_problem() or server_is_too_old(found[3]), hint="af doctor"
        )
    if found:
        return PaneAddress(found[1], found[2])
    if answer.err.startswith("duplicate session"):
        raise AgentFarmError(
            f"tmux already has a session named {name}",
            why="It is not the one that af was about to start.",
            hint="af doctor",
        )
    raise AgentFarmError(
        f"tmux did not start the session {name}",
        why=tmux_problem() or answer.err or f"tmux ended with {answer.code} and said nothing",
        hint="af doctor",
    )
