"""The pane's terminal, before and after a program that may have left it in any mode."""

from __future__ import annotations

import os
import sys
import termios
from contextlib import suppress
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
    """Also forgets what was typed for the program that is gone: a shell must not run it."""
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
