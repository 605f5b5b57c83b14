"""What stands in each line of the board's list, as text with styles; pure, so that it is tested as such."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text

from agent_farm.board.board_order import FAILED, NEEDED, Group
from agent_farm.cli.cells import cut, pad
from agent_farm.cli.status_table import age, work_words
from agent_farm.operations.shown import BuilderShown
from agent_farm.printable import printable

STYLES = {
    "waiting": "bold yellow",
    "interrupted": "yellow",
    "failed": "bold red",
    "lost": "red",
    "unknown": "red",
    "working": "green",
    "preparing": "cyan",
    "creating": "cyan",
    "queued": "dim",
    "idle": "blue",
}
_STATE, _AGE, _GIT, _ID = 11, 4, 12, 22
_NARROW = 96


@dataclass(frozen=True, slots=True)
class Line:
    """`id` is None for a heading; a builder's second line holds its question."""

    text: Text
    id: str | None = None


def lines_of(
    groups: Sequence[Group],
    *,
    width: int,
    now: float,
    marked: Collection[str],
    current: str | None,
    landing: Mapping[str, str],
) -> list[Line]:
    """`landing` says of those that wait to land how far they are."""
    found: list[Line] = []
    for group in groups:
        found.append(Line(Text(f"{group.title} ({len(group.builders)})", style="bold")))
        for builder in group.builders:
            words = landing.get(builder.id) or git_words(builder)
            found += _lines(builder, words, group.title, width, now, marked, current)
    return found


def _lines(
    builder: BuilderShown,
    work: str,
    title: str,
    width: int,
    now: float,
    marked: Collection[str],
    current: str | None,
) -> list[Line]:
    is_current = builder.id == current
    pointer = "›" if is_current else " "  # without colours it is what shows where one is
    line = Text(f"{pointer}{'*' if builder.id in marked else ' '}", end="", no_wrap=True)
    state = builder.status.state
    line.append(pad(state, _STATE), STYLES.get(state, ""))
    rest = f" {pad(_age(builder, now), _AGE)} {pad(cut(work, _GIT), _GIT)} "
    task = printable(" ".join(builder.title.split()))
    if width >= _NARROW:
        rest += f"{pad(cut(builder.id, _ID), _ID)} "
    line.append(cut(rest + task, max(0, width - line.cell_len)))
    lines = [Line(_whole(line, width, is_current), builder.id)]
    if title in (NEEDED, FAILED) and builder.status.reason:
        reason = printable(" ".join(builder.status.reason.split()))
        lines.append(Line(Text(cut(f"    {reason}", width), style="italic"), builder.id))
    return lines


def _whole(line: Text, width: int, is_current: bool) -> Text:
    if is_current:
        line.pad_right(max(0, width - line.cell_len))
        line.stylize("reverse")
    return line


def _age(builder: BuilderShown, now: float) -> str:
    return age(now - builder.status.at) if builder.status.at else ""


def git_words(builder: BuilderShown) -> str:
    if builder.status.state == "queued":
        return ""
    if builder.git is None or builder.git.problem:
        return builder.git.problem if builder.git and builder.git.problem else "?"
    return work_words(builder.git, builder.proof)
