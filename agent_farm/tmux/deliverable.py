"""Which text a terminal can carry to a program."""

from __future__ import annotations

from agent_farm.errors import UsageError


def require_deliverable(text: str) -> None:
    """Control characters would be keys: ESC[201~ ends the paste, and the rest is typed."""
    if not text.strip():
        raise UsageError("There is no text to send", hint="af send --help")
    for index, letter in enumerate(text):
        if (letter < " " or "\x7f" <= letter <= "\x9f") and letter not in "\t\n":
            line = text.count("\n", 0, index) + 1
            raise UsageError(
                f"The text contains the control character U+{ord(letter):04X} in line {line}",
                why="In a terminal it would act as a key; only tab and newline can be sent.",
                hint="af send --help",
            )
        if "\ud800" <= letter <= "\udfff":
            raise UsageError("The text is not valid UTF-8", hint="af send --help")
