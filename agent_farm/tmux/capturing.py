"""Reads what panes show, many with one call."""

from __future__ import annotations

import os
from collections.abc import Sequence

from agent_farm.errors import AgentFarmError, NotFound, ToolMissing
from agent_farm.tmux.tmux_process import ask_tmux, install_command, socket_path

# tmux refuses a command line over about 16,000 characters.
_BATCH = 100


def capture_screen(socket: str | None, pane_id: str, *, escapes: bool) -> str:
    flags = ("-p", "-e") if escapes else ("-p",)
    answer = ask_tmux(socket, (("capture-pane", *flags, "-t", pane_id),))
    if answer.code:
        raise NotFound(f"The pane {pane_id} is gone", why=answer.err, hint="af status")
    return answer.out


def capture_history(socket: str | None, pane_id: str, lines: int, *, escapes: bool) -> str:
    """The screen, and up to `lines` that have scrolled off it.

    Uses libtmux, whose import takes longer than most commands, because this is rarely asked for. The pane is
    created from its id: libtmux's listings contain names that it cannot parse in a C locale.
    """
    from libtmux import Pane, Server
    from libtmux.exc import LibTmuxException, TmuxCommandNotFound

    try:
        pane = Pane(server=Server(socket_path=socket_path(socket, os.environ)), pane_id=pane_id)
        asked = pane.cmd("display-message", "-p", "#{pane_id}")
        if asked.stderr or asked.stdout != [pane_id]:
            raise LibTmuxException(" ".join(asked.stderr) or "it is gone")
        text = pane.capture_pane(start=-lines, escape_sequences=escapes)
    except TmuxCommandNotFound as error:
        raise ToolMissing("tmux is not installed", hint=install_command()) from error
    except LibTmuxException as error:
        raise AgentFarmError(
            f"The pane {pane_id} cannot be read", why=str(error), hint="af status"
        ) from error
    return "\n".join(text) + "\n"


def capture_screens(socket: str | None, pane_ids: Sequence[str], *, escapes: bool = False) -> dict[str, str]:
    """Panes that are gone are left out. AgentFarmError if tmux cannot be asked."""
    screens: dict[str, str] = {}
    waiting = list(pane_ids)
    while waiting:
        batch, rest = waiting[:_BATCH], waiting[_BATCH:]
        found, gone = _captured(socket, batch, ("-p", "-e") if escapes else ("-p",))
        screens |= found
        waiting = [*batch[len(found) + gone :], *rest]
    return screens


def _captured(
    socket: str | None, pane_ids: Sequence[str], flags: tuple[str, ...]
) -> tuple[dict[str, str], int]:
    """The screens up to the first pane that is gone, where tmux stops, and whether there was one."""
    mark = f"af-{os.urandom(8).hex()}"
    commands: list[tuple[str, ...]] = []
    for pane_id in pane_ids:
        commands += [("capture-pane", *flags, "-t", pane_id), ("display-message", "-p", mark)]
    answer = ask_tmux(socket, commands)
    if answer.nothing_there:
        return {}, len(pane_ids)
    screens = answer.out.split(f"{mark}\n")[:-1]
    if answer.code and not answer.err.startswith("can't find pane"):
        raise AgentFarmError("tmux did not return its screens", why=answer.err, hint="af doctor")
    return dict(zip(pane_ids, screens, strict=False)), int(answer.code != 0)
