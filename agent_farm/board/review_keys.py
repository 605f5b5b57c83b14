"""The keys of the review, in one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent_farm.board.key_table import Key
from agent_farm.board.review_rows import Row
from agent_farm.operations.review import ReviewItem
from agent_farm.operations.review_show import ReviewShown


@dataclass(frozen=True, slots=True)
class Here:
    """The result on the screen, and the rows under the cursor or in the range."""

    item: ReviewItem | None
    shown: ReviewShown | None
    rows: tuple[Row, ...]
    undoable: bool


Refusal = Callable[[Here], str | None]


def _result(here: Here) -> str | None:
    return None if here.item and here.shown else "there is no result"


def _hunk(here: Here) -> str | None:
    return _result(here) or (None if here.rows and here.rows[-1].hunk >= 0 else "the cursor is in no hunk")


def _file(here: Here) -> str | None:
    return _result(here) or (None if here.rows and here.rows[-1].file >= 0 else "the cursor is in no file")


def _undecided(here: Here) -> str | None:
    decided = here.item.decision if here.item else None
    return _result(here) or (f"it is {decided.word}; u takes that back" if decided else None)


def _drafts(here: Here) -> str | None:
    drafts = here.shown and any(one.delivery == "draft" for one in here.shown.comments)
    return _result(here) or (None if drafts else "there is no comment to send")


REVIEW_KEYS: tuple[Key[Here], ...] = (
    Key("space", "␣", "read", "read_hunk", "mark the hunk as read, or unread; go to the next", _hunk),
    Key("f", "f", "file", "read_file", "mark the file as read, and go to the next", _file),
    Key("r", "r", "all", "read_all", "mark all of it as read, and go to the next result", _result),
    Key("c", "c", "comment", "comment", "comment on the line, or on the range", _result, asks=True),
    Key("s", "s", "send", "send", "send the comments to its builder, as one message", _drafts, asks=True),
    Key("a", "a", "approve", "approve", "put it into the landing queue", _undecided, asks=True),
    Key("x", "x", "reject", "reject", "send it back with a reason", _undecided, asks=True),
    Key("u", "u", "undo", "undo", "undo the last mark, approval or rejection",
        lambda here: None if here.undoable else "nothing can be undone"),
    Key("v", "v", "range", "range", "begin or drop a range of lines", _hunk),
    Key("n", "n", "next", "next", "the next result"),
    Key("N", "N", "before", "before", "the result before"),
    Key("right_square_bracket", "]", "hunk", "hunk", "the next hunk"),
    Key("left_square_bracket", "[", "hunk", "hunk_before", "the hunk before"),
    Key("enter", "⏎", "unfold", "unfold", "unfold the lines"),
    Key("w", "w", "whole", "whole", "all of it, or only what is new"),
    Key("l", "l", "list", "list", "all results", asks=True),
    Key("e", "e", "editor", "edit", "open its worktree in $EDITOR", _result),
    Key("question_mark", "?", "help", "help", "what the keys do", asks=True),
    Key("q", "q", "quit", "quit", "leave; marks are kept"),
)  # fmt: skip
REVIEW_MOVES = "↑ ↓ j k move · ← → scroll sideways · PgUp PgDn · g G first, last row · Esc drop the range"
