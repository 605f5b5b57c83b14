"""The width of a text on a terminal: an ideograph or an emoji takes two cells, an accent none."""

from __future__ import annotations

import time


def cells(text: str) -> int:
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth  # takes 26 ms, which a plain table need not spend

    width = wcswidth(text)
    return width if width >= 0 else len(text)


def cut(text: str, size: int) -> str:
    """`text` in at most `size` cells, with a mark where something is left out."""
    if cells(text) <= size:
        return text
    length = max(0, size - 1)
    while length and cells(text[:length]) > size - 1:
        length -= 1
    return text[:length] + "…"


def pad(text: str, size: int) -> str:
    return text + " " * (size - cells(text))


def fit(text: str, size: int) -> str:
    """`text` in exactly `size` cells: cut, or padded with blanks."""
    if len(text) <= size and text.isascii():
        return text.ljust(size)
    return pad(cut(text, size), size)


def moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def money(dollars: float) -> str:
    """`$0.13`; an amount that would round to nothing is not shown as $0.00."""
    return "<$0.01" if 0 < dollars < 0.005 else f"${dollars:.2f}"


def counted(number: int, noun: str) -> str:
    """`1 builder`, `3 builders`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
