"""The terminal: raw input, plain output, and the input line with its draft always visible."""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def raw_terminal(descriptor: int) -> Iterator[None]:
    """Keys come one by one and unechoed, pastes in brackets; undone at the end."""
    before = termios.tcgetattr(descriptor)
    raw = termios.tcgetattr(descriptor)
    raw[0] &= ~(termios.ICRNL | termios.INLCR | termios.IXON)
    raw[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
    termios.tcsetattr(descriptor, termios.TCSANOW, raw)
    write("\x1b[?2004h")
    try:
        yield
    finally:
        write("\x1b[?2004l")
        termios.tcsetattr(descriptor, termios.TCSANOW, before)


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def show_line(text: str) -> None:
    """A line of output above the input line."""
    write(f"\r\x1b[J{printable(text)}\n")


def show_draft(prompt: str, draft: bytes) -> None:
    """The input line: the draft's first line as far as it fits, and how much more there is."""
    room = max(10, os.get_terminal_size().columns - len(prompt) - 1)
    write(f"\r\x1b[J{prompt}{_shortened(draft.decode('utf-8', 'replace'), room)}")


def printable(text: str) -> str:
    """Text from outside, which must not move the cursor or set the title."""
    return "".join(letter if letter.isprintable() else "·" for letter in text)


def _shortened(text: str, room: int) -> str:
    first, *others = text.split("\n")
    note = f" [{len(others) + 1} lines, {len(text.encode())} bytes]" if others else ""
    room -= len(note)
    shown = printable(first)
    return (shown if len(shown) <= room else shown[: room - 1] + "…") + note
