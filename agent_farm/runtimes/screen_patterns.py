"""What the screen of a CLI says, as an adapter knows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScreenPatterns:
    """Regular expressions over a pane's text: they hold a message back or correct a stale state, no more.

    `ready` matches an empty input line, `draft` one that holds unsent text, `dialog` a question that an
    Enter would answer, `working` a turn that runs, `failed` an error after which it waits for a person,
    `interrupted` what it says when a person ended the turn. An empty string matches nothing; matching is by
    line (MULTILINE), and the lowest match on the screen counts. With `shows_work`, a turn runs only while
    `working` is to be seen, however often the rest is drawn anew.
    """

    ready: str = ""
    draft: str = ""
    dialog: str = ""
    working: str = ""
    failed: str = ""
    interrupted: str = ""
    shows_work: bool = False
