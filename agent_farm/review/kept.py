"""What is stored of one builder's review: lines that were read, comments, the decision, and what came before.

Line numbers hold in one round: from a commit where the work starts to its tip. `next_round.py` translates
them for the next round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from msgspec import Meta, Struct, structs

from agent_farm.documents import damaged, load
from agent_farm.paths import is_below

T = TypeVar("T")
MOST_PAST = 20
_MOST_LINES = 20_000_000

# First and last line, both included.
Ranges = tuple[tuple[int, int], ...]
Side = Literal["new", "old"]


class Round(Struct, frozen=True):
    """The commit where the work starts, and its last one."""

    start: str
    tip: str


class Gone(Struct, frozen=True):
    """A change that was read and no longer exists: `+` is a line that was removed again, `-` one that is
    back.

    `line` is where it would be in the file now; or, if `there`, where it is, because its base has it, too.
    """

    path: str
    line: int
    sign: Literal["+", "-"]
    text: str
    there: bool = False


class Marks(Struct, frozen=True):
    """Lines that were read: `added` by file in the tip, `removed` by file in the start.

    `heads` are what git said about a file besides its lines.
    """

    round: Round
    added: dict[str, Ranges] = {}
    removed: dict[str, Ranges] = {}
    heads: dict[str, str] = {}
    gone: tuple[Gone, ...] = ()


class Comment(Struct, frozen=True):
    """On lines of a file as it is (`new`) or was (`old`); without a path, on all of the work."""

    number: int
    text: str
    path: str = ""
    side: Side = "new"
    first: int = 0
    last: int = 0
    quoted: tuple[str, ...] = ()
    delivery: Annotated[
        Literal["draft", "sending", "submitted", "unconfirmed"],
        Meta(
            description="draft: not sent yet; submitted: its builder has it; unconfirmed: it may have it, so"
            " it is not sent again"
        ),
    ] = "draft"
    fate: Annotated[
        Literal["open", "answered", "outdated"],
        Meta(description="answered: the lines changed; outdated: they can no longer be found"),
    ] = "open"

    @property
    def place(self) -> str:
        lines = f"{self.first}-{self.last}" if self.last > self.first else str(self.first)
        return f"{self.path}:{lines}{' (removed)' if self.side == 'old' else ''}" if self.path else ""


class Decision(Struct, frozen=True):
    word: Literal["approved", "rejected"]
    tip: Annotated[str, Meta(description="The commit it refers to")]
    at: float
    reason: str | None = None


class Past(Struct, frozen=True):
    """The state before something was done."""

    done: str
    marks: Marks | None
    decision: Decision | None


class KeptReview(Struct, frozen=True):
    marks: Marks | None = None
    comments: tuple[Comment, ...] = ()
    decision: Decision | None = None
    past: tuple[Past, ...] = ()

    @property
    def round(self) -> Round | None:
        """The round in which all line numbers hold, those of comments included."""
        return self.marks.round if self.marks else None

    @property
    def paths(self) -> set[str]:
        named = {one.path for one in self.comments if one.path}
        return named | {*self.marks.added, *self.marks.removed} if self.marks else named

    def after(self, done: str, **changed: object) -> KeptReview:
        """The changed review, in which `done` can be undone."""
        past = (*self.past, Past(done, self.marks, self.decision))[-MOST_PAST:]
        return structs.replace(self, past=past, **changed)


def load_kept(file: Path) -> KeptReview:
    """A file that cannot be read is refused by name, because it holds what a person said."""
    try:
        found = load(file, KeptReview)
    except FileNotFoundError:
        return KeptReview()
    marks = [found.marks, *(one.marks for one in found.past)]
    if not all(map(is_below, found.paths)) or not all(_are_lines(one) for one in marks if one):
        raise damaged(file, "It names lines that do not exist.")
    return found


def _are_lines(marks: Marks) -> bool:
    """Whether the ranges are valid and short enough: each line is kept in memory, whoever wrote them."""
    ranges = [one for some in (*marks.added.values(), *marks.removed.values()) for one in some]
    in_order = all(0 < first <= last for first, last in ranges)
    return in_order and sum(last - first + 1 for first, last in ranges) <= _MOST_LINES


def lines_in(ranges: Ranges) -> Iterator[int]:
    return (line for first, last in ranges for line in range(first, last + 1))


def ranges_of(lines: Iterable[int]) -> Ranges:
    return tuple((run[0], run[-1]) for run in runs(sorted(set(lines)), int))


def runs(items: Iterable[T], line_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Groups of items on consecutive lines."""
    run: list[T] = []
    for one in items:
        if run and line_of(one) > line_of(run[-1]) + 1:
            yield run
            run = []
        run.append(one)
    if run:
        yield run
