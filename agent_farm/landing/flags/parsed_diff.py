"""A parsed diff: files, their hunks, and the lines of these in order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_ESCAPE = re.compile(r"\\([0-7]{3}|.)")
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}

Sign = Literal["+", "-", " "]


class DiffLine(NamedTuple):
    """`number` is the line's number after the change; for a removed line, before it."""

    sign: Sign
    number: int
    text: str


class Hunk(NamedTuple):
    """Where it begins and how many lines it has, before and after; `heading` is the function it is in."""

    old: int
    old_count: int
    new: int
    new_count: int
    heading: str
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True)
class FileChange:
    """`path` is where the file is now (or was, if it is gone); `former` is where it was before it moved.

    `head` holds git's lines about the whole file: modes, whether it is new, gone or a copy, and its blobs.
    """

    path: str
    former: str
    is_new: bool = False
    is_gone: bool = False
    is_binary: bool = False
    hunks: tuple[Hunk, ...] = field(default=(), repr=False)
    head: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[DiffLine, ...]:
        return tuple(line for hunk in self.hunks for line in hunk.lines)

    @property
    def added(self) -> Iterator[DiffLine]:
        return (line for line in self.lines if line.sign == "+")

    @property
    def removed(self) -> Iterator[DiffLine]:
        return (line for line in self.lines if line.sign == "-")


def parse_diff(text: str) -> tuple[FileChange, ...]:
    """Parse what `git diff --patch` prints with the prefixes `a/` and `b/`."""
    files: list[list[str]] = []
    for line in text.split("\n"):
        if line.startswith("diff --git "):
            files.append([])
        if files:
            files[-1].append(line)
    return tuple(map(_file, files))


def _file(rows: list[str]) -> FileChange:
    head, before, after, is_new, is_gone, is_binary = rows[0], "", "", False, False, False
    at = 1
    while at < len(rows) and not rows[at].startswith("@@ "):
        row = rows[at]
        is_new |= row.startswith("new file mode")
        is_gone |= row.startswith("deleted file mode")
        is_binary |= row.startswith("Binary files ")
        for word in ("--- ", "rename from ", "copy from "):
            before = _name(row, word) or before
        for word in ("+++ ", "rename to ", "copy to "):
            after = _name(row, word) or after
        at += 1
    if not before and not after:
        before = after = _only_name(head)
    path = before if is_gone else after or before
    is_binary = is_binary or any("\0" in row for row in rows[at:])
    hunks = () if is_binary else tuple(_hunks(rows[at:]))
    return FileChange(path, before or path, is_new, is_gone, is_binary, hunks, tuple(rows[1:at]))


def _hunks(rows: list[str]) -> Iterator[Hunk]:
    places = [at for at, row in enumerate(rows) if row.startswith("@@ ")]
    for at, end in pairwise([*places, len(rows)]):
        match = _HUNK.match(rows[at])
        assert match is not None
        old, old_count, new, new_count = (int(count or 1) for count in match.groups()[:4])
        lines = tuple(_lines(rows[at + 1 : end], old, new))
        yield Hunk(old, old_count, new, new_count, match[5], lines)


def _lines(rows: list[str], old: int, new: int) -> Iterator[DiffLine]:
    for row in rows:
        if row.startswith("-"):
            yield DiffLine("-", old, row[1:])
            old += 1
        elif row.startswith("+"):
            yield DiffLine("+", new, row[1:])
            new += 1
        elif row.startswith(" "):
            yield DiffLine(" ", new, row[1:])
            old, new = old + 1, new + 1


def _name(row: str, word: str) -> str:
    """The path in a header line that begins with `word`; "" for any other line, and for /dev/null."""
    if not row.startswith(word):
        return ""
    name = _plain(row.removeprefix(word).split("\t")[0])
    if word in ("--- ", "+++ "):
        return "" if name == "/dev/null" else name[2:]
    return name


def _only_name(head: str) -> str:
    """The name in `diff --git a/x b/x`, for a file without content or with a new mode."""
    names = head.removeprefix("diff --git ")
    if names.startswith('"'):
        return _plain(names[: len(names) // 2])[2:]
    return names[: len(names) // 2].removeprefix("a/")


def _plain(name: str) -> str:
    """git quotes names with unusual characters."""
    if not (name.startswith('"') and name.endswith('"')):
        return name
    found = _ESCAPE.sub(
        lambda match: chr(int(match[1], 8)) if match[1].isdecimal() else _LETTERS.get(match[1], match[1]),
        name[1:-1],
    )
    try:
        return found.encode("latin-1").decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # it has characters that git would have escaped
        return found
