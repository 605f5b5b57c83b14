"""Reads from a pane's screen what matters for typing: a dialog, an unfinished draft, an empty input line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

_ESCAPE = re.compile(r"\x1b\[([0-9;:]*)m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-9;?]*[A-Za-z]|[\x0e\x0f]")
_DIM, _REVERSE = 2, 7
_QUOTED = 60
_ABOVE = 8
_FRAME = " \xa0\t┃│║"


class ScreenRules(Struct, frozen=True):
    """An adapter's regular expressions for lines of the screen; an empty one matches nothing.

    `ready` is an empty input line, `draft` one with unsent text, `dialog` a question that Enter would answer.
    Of several matches the lowest on the screen counts, since earlier output scrolls up.
    """

    ready: str = ""
    draft: str = ""
    dialog: str = ""


_OPTION = re.compile(r"^[\s│┃|>❯›●○*-]*(\d)[.)]\s+(\S.*?)[\s│┃|]*$")


class Reading(Struct, frozen=True):
    ready: bool
    draft: str | None
    dialog: str | None


def options_of(captured: str) -> dict[str, str]:
    """The numbered options of the lowest dialog on the screen: each key and its label."""
    found: dict[str, str] = {}
    for line in _ESCAPE.sub("", captured).splitlines():
        if match := _OPTION.match(line):
            if match[1] == "1":
                found = {}
            found[match[1]] = match[2]
    return found


def read_screen(captured: str, rules: ScreenRules) -> Reading:
    """`captured` includes escape sequences, by which dim text is recognised as a placeholder, not a draft."""
    text = without_placeholders(captured)
    ready, draft = last_match(rules.ready, text), last_match(rules.draft, text)
    dialog = last_match(rules.dialog, text)
    ready_at = ready.start() if ready else -1
    unsent = draft is not None and draft.start() > ready_at
    asking = dialog is not None and dialog.start() > ready_at
    return Reading(
        ready=ready is not None and not unsent and not asking,
        draft=_line_of(draft) if draft is not None and unsent else None,
        dialog=_question(dialog) if dialog is not None and asking else None,
    )


def last_match(pattern: str, text: str) -> re.Match[str] | None:
    """The lowest match on the screen; None for an empty pattern."""
    matches = list(re.finditer(pattern, text, re.MULTILINE)) if pattern else []
    return matches[-1] if matches else None


def _question(match: re.Match[str]) -> str:
    """The question, which usually is above the line that identifies the dialog."""
    above = match.string[: match.start()].splitlines()[-_ABOVE:]
    asked = [line.strip(_FRAME) for line in above if line.strip(_FRAME).endswith("?")]
    return asked[-1][:_QUOTED] if asked else _line_of(match)


def _line_of(match: re.Match[str]) -> str:
    """The first line of the match that contains a word; a pattern may include lines above or below it."""
    begin = match.string.rfind("\n", 0, match.start()) + 1
    end = match.string.find("\n", match.end() - 1)
    lines = match.string[begin : len(match.string) if end < 0 else end].splitlines()
    said = next((line for line in lines if re.search(r"\w", line)), "".join(lines[-1:]))
    return said.strip(_FRAME)[:_QUOTED].rstrip()


def without_placeholders(captured: str) -> str:
    """The text, with blanks for dim letters, and for a block cursor on the first of these."""
    cells = list(_cells(captured))
    text = []
    for index, (letter, dim, reverse) in enumerate(cells):
        under_cursor = reverse and index + 1 < len(cells) and cells[index + 1][1]
        text.append(" " if (dim or under_cursor) and letter != "\n" else letter)
    return "".join(text)


def plain(captured: str) -> str:
    return _ESCAPE.sub("", captured)


def _cells(captured: str) -> Iterator[tuple[str, bool, bool]]:
    """Each character, whether it is dim, and whether it is reversed."""
    style: set[int] = set()
    end = 0
    for escape in _ESCAPE.finditer(captured):
        yield from ((letter, _DIM in style, _REVERSE in style) for letter in captured[end : escape.start()])
        if escape[1] is not None:
            _apply(style, escape[1])
        end = escape.end()
    yield from ((letter, _DIM in style, _REVERSE in style) for letter in captured[end:])


def _apply(style: set[int], codes: str) -> None:
    numbers = iter(codes.split(";"))
    for code in numbers:
        if code in ("38", "48", "58"):  # a colour follows: 5;n or 2;r;g;b, whose 2 does not mean dim
            for _ in range({"5": 1, "2": 3}.get(next(numbers, ""), 0)):
                next(numbers, None)
        elif code in ("", "0"):
            style.clear()
        elif code == "22":
            style.discard(_DIM)
        elif code == "27":
            style.discard(_REVERSE)
        elif code in ("2", "7"):
            style.add(int(code))
