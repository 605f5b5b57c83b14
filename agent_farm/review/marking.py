"""Marks a hunk, a file or a whole diff as read or unread."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from agent_farm.landing.flags.parsed_diff import FileChange
from agent_farm.review.diff_as_read import FileRead, LineRead, shown_text
from agent_farm.review.kept import Gone, Marks, Ranges, lines_in, ranges_of
from agent_farm.review.next_round import head_of, key_of


def marked(
    files: Sequence[FileChange],
    shown: Sequence[FileRead],
    marks: Marks,
    *,
    path: str | None = None,
    hunk: str | None = None,
    unread: bool = False,
) -> Marks:
    """The marks after one hunk, one file or everything was read, or marked unread."""
    lines = _Lines(marks)
    heads = dict(marks.heads)
    raw = {(shown_text(file.path), key_of(file)[0]): file for file in files}
    for file in shown:
        if path not in (None, file.path):
            continue
        change = raw.get((file.path, "-" if file.kind == "deleted" else "+"))
        for one in file.hunks:
            if hunk in (None, one.id):
                for line in one.lines:
                    lines.mark(file, change, line, unread=unread)
        if change and hunk is None:
            heads[key_of(change)] = "" if unread else head_of(change)
    return Marks(
        marks.round,
        added=_ranges(lines.added),
        removed=_ranges(lines.removed),
        heads={key: head for key, head in heads.items() if head},
        gone=tuple(lines.gone),
    )


class _Lines:
    """The marked lines as sets, while marks are added or removed."""

    def __init__(self, marks: Marks) -> None:
        self.added = {name: set(lines_in(ranges)) for name, ranges in marks.added.items()}
        self.removed = {name: set(lines_in(ranges)) for name, ranges in marks.removed.items()}
        self.gone = list(marks.gone)

    def mark(self, file: FileRead, change: FileChange | None, line: LineRead, *, unread: bool) -> None:
        if line.gone:
            _forget(self.gone, change.path if change else file.path, line)
        elif change and line.sign == "+" and line.new:
            _set(self.added.setdefault(change.path, set()), line.new, unread)
        elif change and line.sign == "-" and line.old:
            _set(self.removed.setdefault(change.former, set()), line.old, unread)


def _ranges(marked: Mapping[str, Collection[int]]) -> dict[str, Ranges]:
    return {name: ranges_of(lines) for name, lines in marked.items() if lines}


def _set(lines: set[int], line: int, unread: bool) -> None:
    if unread:
        lines.discard(line)
    else:
        lines.add(line)


def _forget(gone: list[Gone], path: str, line: LineRead) -> None:
    for one in gone:
        if (shown_text(one.path), one.sign, shown_text(one.text)) == (shown_text(path), line.sign, line.text):
            gone.remove(one)
            return
