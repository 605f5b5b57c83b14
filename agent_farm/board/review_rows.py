"""The rows of a result on the screen: its evidence, files, hunks and lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from agent_farm.cli.review_lines import comment_line, evidence
from agent_farm.operations.review import ReviewItem
from agent_farm.operations.review_show import ReviewShown
from agent_farm.review.diff_as_read import FileRead, HunkRead, LineRead
from agent_farm.review.folding import Fold, folded, heading_of
from agent_farm.review.kept import Comment

Kind = Literal["told", "file", "hunk", "line", "fold", "comment"]


@dataclass(frozen=True, slots=True)
class Row:
    """`left` and `right` are two lines `beside` each other; otherwise there is only `left`.

    `key` names the fold that the row belongs to.
    """

    kind: Kind
    text: str = ""
    file: int = -1
    hunk: int = -1
    left: LineRead | None = None
    right: LineRead | None = None
    key: str = ""
    style: str = ""
    beside: bool = False


def rows_of(
    item: ReviewItem | None, shown: ReviewShown, *, opened: Collection[str], beside: bool
) -> list[Row]:
    there = {path for file in shown.files for path in (file.path, file.former)}
    told = [(" ".join(shown.title.split()), "bold"), *evidence(shown, item)]
    told += [(comment_line(one), "magenta") for one in shown.comments if one.path not in there]
    rows = [Row("told", text, style=style or "") for text, style in told]
    for at, file in enumerate(shown.files):
        rows.append(Row("told"))
        rows.append(Row("file", _heading(file, cut=file.path in shown.cut), at, style="bold"))
        comments = [one for one in shown.comments if one.path in (file.path, file.former)]
        for number, hunk in enumerate(file.hunks):
            rows += _hunk(at, number, file, hunk, comments, opened, beside)
        rows += [Row("comment", comment_line(one), at) for one in comments]
    if not shown.files:
        is_empty = item is not None and not item.files
        nothing = (
            "It has committed nothing."
            if is_empty
            else "Nothing is new since you read it. w shows all of it."
        )
        rows += [Row("told"), Row("told", nothing)]
    return rows


def _heading(file: FileRead, *, cut: bool) -> str:
    more = "too long to show here: af review --show --file" if cut else ""
    return heading_of(file, more) + ("" if file.unread else "  ✓ read")


def _hunk(
    at: int,
    number: int,
    file: FileRead,
    hunk: HunkRead,
    comments: list[Comment],
    opened: Collection[str],
    beside: bool,
) -> Iterator[Row]:
    read = "" if hunk.unread else "  ✓ read"
    yield Row("hunk", f"@ {hunk.heading or hunk.first}".rstrip() + read, at, number, style="cyan")
    run: list[LineRead] = []

    def flushed() -> Iterator[Row]:
        yield from _lines(at, number, run, comments, beside=beside)
        run.clear()

    for place, one in enumerate(folded(file, hunk)):
        if not isinstance(one, Fold):
            run.append(one)
            continue
        key = f"{hunk.id}:{place}"
        if key in opened:
            run += one.lines
        else:
            yield from flushed()
            yield Row("fold", f"▸ {one.text}", at, number, key=key, style="dim italic")
    yield from flushed()


def _lines(
    at: int, number: int, lines: Sequence[LineRead], comments: list[Comment], *, beside: bool
) -> Iterator[Row]:
    pairs = _paired(lines) if beside else ((line, None) for line in lines)
    for left, right in pairs:
        yield Row("line", file=at, hunk=number, left=left, right=right, beside=beside)
        for line in filter(None, (left, right)):
            for one in [one for one in comments if _ends_at(one, line)]:
                comments.remove(one)
                yield Row("comment", comment_line(one), at, number, style="magenta")


def _ends_at(one: Comment, line: LineRead) -> bool:
    if line.gone or line.sign == "…":
        return False
    return one.last == (line.new if one.side == "new" else line.old) and line.sign != (
        "-" if one.side == "new" else "+"
    )


def _paired(lines: Sequence[LineRead]) -> Iterator[tuple[LineRead | None, LineRead | None]]:
    """Puts removed lines beside the lines that replaced them."""
    before: list[LineRead] = []
    after: list[LineRead] = []
    for line in (*lines, None):
        if line is not None and line.sign == "-" and not after:
            before.append(line)
        elif line is not None and line.sign == "+":
            after.append(line)
        else:
            yield from zip_longest(before, after)
            before, after = [], []
            if line is not None and line.sign == "-":
                before.append(line)
            elif line is not None:
                yield line, line
