"""Restores the pane's terminal after a program that may have left it in any mode."""

from __future__ import annotations

import os
import sys
import termios
import time

from agent_farm.lean import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Leave: scroll region, alternate screen, bracketed paste, mouse and focus reports, application keys,
# kitty keyboard, colours, hidden cursor.
_RESET = (
    "\x1b7\x1b[r\x1b8\x1b[?1049l\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l"
    "\x1b[?1l\x1b>\x1b[<u\x1b[0m\x1b[?25h\r"
)


def saved_modes() -> list[Any] | None:
    with suppress(termios.error):
        return termios.tcgetattr(0)
    return None


def restore_terminal(modes: list[Any] | None) -> None:
    """Also discards what was typed for the program that is gone, so that no shell runs it."""
    with suppress(termios.error, OSError):
        if modes is not None:
            termios.tcsetattr(0, termios.TCSANOW, modes)
        termios.tcflush(0, termios.TCIFLUSH)
    say(_RESET, end="")


def terminal_is_gone() -> bool:
    try:
        os.tcgetpgrp(0)
    except OSError:
        return True
    return False


def say(text: str = "", end: str = "\r\n") -> None:
    with suppress(OSError, ValueError):
        sys.stdout.write(text + end)
        sys.stdout.flush()


AT_ONCE_SECONDS = 30.0
_ASK_SECONDS = 2.0
_SHOWN_SECONDS = 0.5
_LENGTH = 200


def last_words(env: Mapping[str, str]) -> str | None:
    """The last line with text on the pane's screen; None if tmux does not tell."""
    pane, server = env.get("TMUX_PANE"), env.get("TMUX", "").split(",")[0]
    if not pane or not server:
        return None
    deadline = time.monotonic() + _SHOWN_SECONDS  # tmux may not have read the last output yet
    while (said := _last_line(server, pane)) == "" and time.monotonic() < deadline:
        time.sleep(0.05)
    return said or None


def _last_line(server: str, pane: str) -> str | None:
    import subprocess  # only needed for a runtime that ended at once

    argv = ("tmux", "-u", "-S", server, "capture-pane", "-p", "-t", pane)
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_ASK_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = [_printable(line) for line in done.stdout.decode("utf-8", "replace").splitlines()]
    said = [line for line in lines if line and not line.startswith("[agent-farm]")]
    if done.returncode:
        return None
    return said[-1][:_LENGTH] if said else ""


def _printable(line: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in line).strip()
