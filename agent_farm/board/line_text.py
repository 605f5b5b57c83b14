"""The lines of the board's list, as text with styles."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text

from agent_farm.board.board_order import FAILED, NEEDED, Group
from agent_farm.cli.cells import cut, pad
from agent_farm.cli.output import STATE_STYLES
from agent_farm.cli.status_table import age, work_words
from agent_farm.operations.shown import BuilderShown
from agent_farm.printable import printable

STYLES = {**STATE_STYLES, "waiting": "bold yellow", "failed": "bold red"}
_STATE, _AGE, _GIT, _GIT_AND_REQUEST, _ID = 11, 4, 12, 18, 22
_NARROW = 96


@dataclass(frozen=True, slots=True)
class BoardLine:
    """A heading, or a builder's line; a builder's `second` line holds its question."""

    title: str
    size: int
    builder: BuilderShown | None = None
    second: bool = False

    @property
    def id(self) -> str | None:
        return self.builder.id if self.builder else None


def lines_of(groups: Sequence[Group]) -> list[BoardLine]:
    found: list[BoardLine] = []
    for group in groups:
        title, size = group.title, len(group.builders)
        found.append(BoardLine(title, size))
        for builder in group.builders:
            found.append(BoardLine(title, size, builder))
            if title in (NEEDED, FAILED) and builder.status.reason:
                found.append(BoardLine(title, size, builder, second=True))
    return found


@dataclass(frozen=True, slots=True)
class Look:
    """What a line's text depends on; `landing` is the progress of builders that wait to land."""

    width: int
    now: float
    marked: Collection[str]
    current: str | None
    landing: Mapping[str, str]


def text_of(line: BoardLine, look: Look) -> Text:
    """Called only for lines on the screen: there may be hundreds of builders."""
    if line.builder is None:
        return Text(f"{line.title} ({line.size})", style="bold")
    if line.second:
        reason = printable(" ".join((line.builder.status.reason or "").split()))
        return Text(cut(f"    {reason}", look.width), style="italic")
    return _main_text(line.builder, look)


def _main_text(builder: BuilderShown, look: Look) -> Text:
    is_current = builder.id == look.current
    pointer = "›" if is_current else " "  # without colours, only this shows where the cursor is
    line = Text(f"{pointer}{'*' if builder.id in look.marked else ' '}", end="", no_wrap=True)
    state = builder.status.state
    line.append(pad(state, _STATE), STYLES.get(state, ""))
    is_wide = look.width >= _NARROW
    git = _GIT_AND_REQUEST if is_wide else _GIT
    work = look.landing.get(builder.id) or git_words(builder, whole=is_wide)
    rest = f" {pad(_age(builder, look.now), _AGE)} {pad(cut(work, git), git)} "
    if is_wide:
        rest += f"{pad(cut(builder.id, _ID), _ID)} "
    task = printable(_where(builder, look.now) + " ".join(builder.title.split()))
    line.append(cut(rest + task, max(0, look.width - line.cell_len)))
    if is_current:
        line.pad_right(max(0, look.width - line.cell_len))
        line.stylize("reverse")
    return line


def _where(builder: BuilderShown, now: float) -> str:
    """The builder's machine, if not this one, and the age of what it said if it no longer answers."""
    if builder.host is None:
        return ""
    old = f" {age(now - builder.seen_at)} ago" if builder.seen_at else ""
    return f"{builder.host}{old}: "


def _age(builder: BuilderShown, now: float) -> str:
    return age(now - builder.status.at) if builder.status.at else ""


def git_words(builder: BuilderShown, *, whole: bool) -> str:
    """Git's state and the pull request; if there is no room for both, only the pull request."""
    if builder.pull_request:
        return f"{_tree_words(builder)} {builder.pull_request.short}" if whole else builder.pull_request.short
    return _tree_words(builder)


def _tree_words(builder: BuilderShown) -> str:
    if builder.status.state == "queued":
        return ""
    if builder.git is None or builder.git.problem:
        return builder.git.problem if builder.git and builder.git.problem else "?"
    return work_words(builder.git, builder.proof)
