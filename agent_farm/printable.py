"""Text from outside, made fit to be shown: what would move a cursor or turn a line around is written out."""

from __future__ import annotations


def printable(text: str) -> str:
    """Control characters of a file name or message cannot move the cursor or change colours."""
    if text.isprintable():
        return text
    return "".join(
        char
        if char in "\n\t" or (char.isprintable() and not "\ud800" <= char <= "\udfff")
        else f"\\x{ord(char):02x}"
        for char in text
    )
