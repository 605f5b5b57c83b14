"""Which text a terminal can carry to a program, and the outcome of a delivery."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from agent_farm.errors import UsageError


class Delivery(Struct, frozen=True):
    """`held`: nothing was typed. `failed`: the reason says what became of the text.

    `pressed`: the keys in the reason were pressed, whatever they did. `held_by` is what a person has to deal
    with first.
    """

    outcome: Literal["submitted", "held", "failed", "pressed"]
    reason: str | None = None
    source: Literal["event", "screen"] | None = None
    held_by: Literal["dialog", "draft"] | None = None


def require_deliverable(text: str) -> None:
    """Control characters would act as keys: ESC[201~ ends the paste, and the rest is typed."""
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
