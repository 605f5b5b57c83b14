"""Text from outside, made safe to show: characters that move the cursor or reverse a line are escaped."""

from __future__ import annotations


def printable(text: str) -> str:
    """Escapes control characters, so that a file name cannot move the cursor or change colours."""
    if text.isprintable():
        return text
    return "".join(
        char
        if char in "\n\t" or (char.isprintable() and not "\ud800" <= char <= "\udfff")
        else f"\\x{ord(char):02x}"
        for char in text
    )
