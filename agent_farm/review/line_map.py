"""Where lines went between two trees, according to git's comparison of these."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from agent_farm.landing.flags.parsed_diff import FileChange, parse_diff


class LineMap:
    """For one file, from the parts that differ: where each begins and how long it is, before and after."""

    def __init__(self, parts: Iterable[tuple[int, int, int, int]] = ()) -> None:
        # for an empty part, git names the line before it
        self._given = list(parts)
        self._parts = [
            (old + (not old_count), old_count, new + (not new_count), new_count)
            for old, old_count, new, new_count in self._given
        ]
        self._begins = [part[0] for part in self._parts]

    def carry(self, line: int) -> int | None:
        """The line's number afterwards; None if it differs or is gone."""
        at = bisect_right(self._begins, line) - 1
        if at < 0:
            return line
        old, old_count, new, new_count = self._parts[at]
        after = line - old - old_count
        return None if after < 0 else new + new_count + after

    def back(self) -> LineMap:
        """The map in the other direction."""
        return LineMap((new, new_count, old, old_count) for old, old_count, new, new_count in self._given)

    def place(self, line: int) -> int:
        """Where the line is, or where its replacement begins."""
        there = self.carry(line)
        return there if there is not None else self._parts[bisect_right(self._begins, line) - 1][2]


class TreeMap:
    """For all files; paths that the diff does not mention are the same in both trees."""

    def __init__(self, diff: str, large: Iterable[str]) -> None:
        self._lost = set(large)
        self._files: dict[str, FileChange] = {}
        for file in parse_diff(diff):
            if not file.is_new:
                self._files[file.former] = file

    def path(self, path: str) -> str | None:
        """The file's name now; None if it is gone, or its lines cannot be compared."""
        file = self._files.get(path)
        if path in self._lost or (file and (file.is_gone or file.is_binary)):
            return None
        return file.path if file else path

    def lines(self, path: str) -> LineMap:
        """The map for a file that `path` finds."""
        file = self._files.get(path)
        parts = file.hunks if file else ()
        return LineMap((hunk.old, hunk.old_count, hunk.new, hunk.new_count) for hunk in parts)

    def former(self, path: str) -> str | None:
        """The former name of a file, given its name now; None for a new file."""
        file = next((one for one in self._files.values() if one.path == path and not one.is_gone), None)
        return file.former if file else None

    def text(self, path: str, line: int) -> str:
        """The text of a line that differs or is gone."""
        file = self._files.get(path)
        return next((one.text for one in file.removed if one.number == line), "") if file else ""


class Anchors:
    """Lines of the old tip that neither round changes; in the new tip, lines around them must be in the same
    order.

    Of two lines that changed places, git may consider either the one that moved, differently in each
    comparison.
    """

    def __init__(self, before: LineMap, between: LineMap, after: LineMap) -> None:
        self._back, self._between, self._after = before.back(), between, after
        self._known: dict[int, dict[int, int]] = {-1: {0: 0}, 1: {}}

    def hold(self, old: int, new: int) -> bool:
        """Whether the line is between the same anchors as before."""
        return self._next(old, -1) < new < self._next(old, 1)

    def _next(self, line: int, by: int) -> int:
        known, passed = self._known[by], list[int]()
        while line not in known:
            there = self._common(line)
            if there is not None:
                known[line] = there
            else:
                passed.append(line)
                line += by
        known.update(dict.fromkeys(passed, known[line]))
        return known[line]

    def _common(self, line: int) -> int | None:
        first = self._back.carry(line)
        second = self._between.carry(first) if first is not None else None
        return self._after.carry(second) if second is not None else None
