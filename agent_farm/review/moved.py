"""Finds lines that a reader may fold: moved lines, and lines in which only white space differs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agent_farm.landing.flags.parsed_diff import DiffLine, FileChange, Hunk
from agent_farm.review.kept import runs

_LEAST_LINES, _LEAST_LETTERS = 3, 30  # shorter runs of lines are often equal by chance
_MOST_LINES = 50_000
# Files in which a line's indentation has a meaning.
_INDENTED = re.compile(
    r"\.(?:pyi?|ya?ml|haml|slim|pug|sass|styl|coffee|nim|fs|hs|mk|rst|md)$|(?:^|/)[Mm]akefile"
)
_QUOTES = re.compile(r"[\"'`]")

# A changed line: its file, its sign and its number.
Place = tuple[str, str, int]


def moved_lines(files: Sequence[FileChange]) -> dict[Place, str]:
    """Where lines were before, or are now, that were moved as a block."""
    out = [run for file in files for run in _runs(file, "-")]
    put = [run for file in files for run in _runs(file, "+")]
    if sum(len(lines) for _, lines in (*out, *put)) > _MOST_LINES:
        return {}
    starts: dict[str, list[tuple[str, list[DiffLine], int]]] = {}
    for path, lines in out:
        for at, line in enumerate(lines):
            starts.setdefault(line.text, []).append((path, lines, at))
    found: dict[Place, str] = {}
    for path, lines in put:
        at = 0
        while at < len(lines):
            best = max(
                (_match(lines, at, *other) for other in starts.get(lines[at].text, ())[:20]), default=None
            )
            if best is None or not _is_enough(lines[at : at + best[0]]):
                at += 1
                continue
            length, from_path, begin = best
            first, origin = lines[at].number, begin
            for step in range(length):
                found[path, "+", lines[at + step].number] = f"{from_path}:{origin}"
                found[from_path, "-", origin + step] = f"{path}:{first}"
            at += length
    return found


def _runs(file: FileChange, sign: str) -> Iterator[tuple[str, list[DiffLine]]]:
    path, lines = (file.former, file.removed) if sign == "-" else (file.path, file.added)
    return ((path, run) for run in runs(lines, lambda line: line.number))


def _match(
    lines: list[DiffLine], at: int, path: str, other: list[DiffLine], there: int
) -> tuple[int, str, int]:
    length = 0
    while (
        at + length < len(lines)
        and there + length < len(other)
        and lines[at + length].text == other[there + length].text
    ):
        length += 1
    return length, path, other[there].number


def _is_enough(lines: Sequence[DiffLine]) -> bool:
    letters = sum(char.isalnum() for line in lines for char in line.text)
    return sum(bool(line.text.strip()) for line in lines) >= _LEAST_LINES and letters >= _LEAST_LETTERS


def only_spaces(path: str, hunk: Hunk) -> set[int]:
    """Indexes of lines that differ from their replacement only in white space without meaning."""
    found: set[int] = set()
    for begin, end in changed_runs(hunk):
        run = hunk.lines[begin:end]
        sides = ([_plain(path, line.text) for line in run if line.sign == sign] for sign in "-+")
        before, after = (list(filter(None, side)) for side in sides)
        if before == after:
            found.update(range(begin, end))
    return found


def changed_runs(hunk: Hunk) -> Iterator[tuple[int, int]]:
    """Begin and end of each run of changed lines."""
    changed = (at for at, line in enumerate(hunk.lines) if line.sign != " ")
    return ((run[0], run[-1] + 1) for run in runs(changed, int))


def _plain(path: str, text: str) -> str:
    """The line without white space that has no meaning; inside a string, it has."""
    kept = text.rstrip()
    body = kept.lstrip()
    indent = kept[: len(kept) - len(body)] if _INDENTED.search(path) else ""
    return indent + (body if _QUOTES.search(body) else " ".join(body.split()))
