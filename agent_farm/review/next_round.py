"""Carries marks from one round of a builder's work to the next: exactly what is unchanged stays read.

A line only counts as read if git's comparison of both tips (for a removed line: of both starts) finds that
very line again, and it is still a change. So it does not matter whether commits were added, amended or
rebased, and nothing counts as read because it resembles something that was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from msgspec import structs

from agent_farm.landing.flags.parsed_diff import FileChange
from agent_farm.review.kept import Comment, Gone, Marks, Ranges, Round, lines_in, ranges_of
from agent_farm.review.line_map import Anchors, LineMap, TreeMap


@dataclass(frozen=True, slots=True)
class Changes:
    """The lines that a round changes, by path: `added` in its tip, `removed` in its start."""

    added: Mapping[str, frozenset[int]]
    removed: Mapping[str, frozenset[int]]
    heads: Mapping[str, str]

    @classmethod
    def of(cls, files: Sequence[FileChange]) -> Changes:
        added: dict[str, frozenset[int]] = {}
        removed: dict[str, frozenset[int]] = {}
        for file in files:
            if not file.is_gone:
                added[file.path] = frozenset(line.number for line in file.added)
            if not file.is_new:
                removed[file.former] = frozenset(line.number for line in file.removed)
        return cls(added, removed, {key_of(file): head_of(file) for file in files})


def key_of(file: FileChange) -> str:
    """The key of a change; a file that became a link, for example, is one file gone and another new."""
    return f"{'-' if file.is_gone else '+'}{file.path}"


_LESS = (
    "index ",
    "--- ",
    "+++ ",
    "similarity ",
    "dissimilarity ",
    "new file mode 100644",
    "deleted file mode",
)


def head_of(file: FileChange) -> str:
    """What there is to read about a file besides its lines; "" if nothing."""
    has_lines = bool(file.hunks)
    rows = (row for row in file.head if not has_lines or not row.startswith(_LESS))
    return "\n".join(row for row in rows if not row.startswith(("similarity ", "dissimilarity ")))


@dataclass(frozen=True, slots=True)
class Step:
    """The step from one round, with the changes `before`, to another, with the changes `files`.

    `lines_of` reads a file in the new tip.
    """

    to: Round
    before: TreeMap
    starts: TreeMap
    tips: TreeMap
    files: Sequence[FileChange] = field(repr=False)
    lines_of: Callable[[str], Sequence[str]] = field(repr=False)

    def marks(self, marks: Marks) -> Marks:
        here = Changes.of(self.files)
        gone: list[Gone] = []
        return Marks(
            self.to,
            added=self._added(marks.added, here, gone),
            removed=self._removed(marks.removed, here, gone),
            heads={key: head for key, head in marks.heads.items() if here.heads.get(key) == head},
            gone=(*(self._still(one) for one in marks.gone), *gone),
        )

    def _added(self, before: Mapping[str, Ranges], here: Changes, gone: list[Gone]) -> dict[str, Ranges]:
        found: dict[str, Ranges] = {}
        for path, ranges in before.items():
            now = self.tips.path(path)
            lines = self.tips.lines(path)
            anchors = self._anchors(path, now)
            kept = []
            if now not in (None, path):
                gone.append(Gone(now or path, 1, "+", f"(the file's name) {path}"))
            for line in lines_in(ranges):
                there = lines.carry(line) if now else None
                if now is None or there is None:
                    place = lines.place(line) if now else 1
                    gone.append(Gone(now or path, place, "+", self.tips.text(path, line)))
                elif there in here.added.get(now, ()):
                    if anchors is None or anchors.hold(line, there):
                        kept.append(there)
                else:  # its base has it, too; or git now takes the other of two equal lines as new
                    gone.append(Gone(now, there, "+", self._text(now, there), there=True))
            if kept:
                found[now or path] = ranges_of(kept)
        return found

    def _removed(self, before: Mapping[str, Ranges], here: Changes, gone: list[Gone]) -> dict[str, Ranges]:
        """A line that is no longer removed is in the tip again, unless its base has dropped it."""
        found: dict[str, Ranges] = {}
        paths = {file.former: file.path for file in self.files if not file.is_new and not file.is_gone}
        for path, ranges in before.items():
            now = self.starts.path(path)
            if now is None:
                continue
            lines, kept = self.starts.lines(path), []
            for line in lines_in(ranges):
                there = lines.carry(line)
                if there is not None and there in here.removed.get(now, ()):
                    kept.append(there)
                elif there is not None:
                    name = paths.get(now, now)
                    place = self._onwards(name).place(there)
                    gone.append(Gone(name, place, "-", self._text(name, place)))
            if kept:
                found[now] = ranges_of(kept)
        return found

    def _anchors(self, path: str, now: str | None) -> Anchors | None:
        former = self.before.former(path)
        start = self.starts.path(former) if former else None
        if former is None or start is None or now is None:
            return None
        return Anchors(self.before.lines(former), self.starts.lines(former), self._onwards(now))

    def _onwards(self, path: str) -> LineMap:
        """The map from the start of the new round to its tip."""
        file = next((file for file in self.files if file.path == path and not file.is_gone), None)
        return LineMap(_bare(file) if file else ())

    def _text(self, path: str, line: int) -> str:
        lines = self.lines_of(path)
        return lines[line - 1] if 0 < line <= len(lines) else ""

    def _still(self, one: Gone) -> Gone:
        now = self.tips.path(one.path)
        return structs.replace(one, path=now, line=self.tips.lines(one.path).place(one.line)) if now else one

    def comment(self, comment: Comment) -> Comment:
        """The comment at its present place. Once answered or outdated, it stays so."""
        if not comment.path:
            return comment if comment.delivery == "draft" else structs.replace(comment, fate="answered")
        trees = self.tips if comment.side == "new" else self.starts
        now = trees.path(comment.path)
        if now is None:
            return structs.replace(comment, fate="outdated")
        lines = trees.lines(comment.path)
        found = [lines.carry(line) for line in range(comment.first, comment.last + 1)]
        first = lines.place(comment.first)
        whole = found == list(range(first, first + len(found)))
        if comment.side == "old":
            whole = whole and set(found) <= Changes.of(self.files).removed.get(now, frozenset())
        fate = "answered" if comment.fate == "open" and not whole else comment.fate
        last = max([first, *(line for line in found if line)])
        return structs.replace(comment, path=now, first=first, last=last, fate=fate)


def _bare(file: FileChange) -> Iterator[tuple[int, int, int, int]]:
    """The parts that differ, without context lines, in git's notation."""
    for hunk in file.hunks:
        old, new = hunk.old + (not hunk.old_count), hunk.new + (not hunk.new_count)
        for same, lines in groupby(hunk.lines, lambda line: line.sign == " "):
            signs = [line.sign for line in lines]
            less, more = len(signs) - signs.count("+"), len(signs) - signs.count("-")
            if not same:
                yield old - (not less), less, new - (not more), more
            old, new = old + less, new + more
