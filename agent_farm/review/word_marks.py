"""Finds the characters in which a changed line differs from the line that it replaces."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from agent_farm.landing.flags.parsed_diff import Hunk
from agent_farm.review.moved import changed_runs

Spans = tuple[tuple[int, int], ...]

_WORD = re.compile(r"\w+|\s+|.")
_MOST_LINES, _MOST_CHARACTERS = 60, 400  # beyond this, marks would not help
_ALIKE = 0.4


def word_marks(hunk: Hunk) -> dict[int, Spans]:
    """By line index in the hunk; lines that have little in common get none."""
    found: dict[int, Spans] = {}
    for begin, end in changed_runs(hunk):
        run = hunk.lines[begin:end]
        before = [begin + at for at, line in enumerate(run) if line.sign == "-"]
        after = [begin + at for at, line in enumerate(run) if line.sign == "+"]
        if max(len(before), len(after)) > _MOST_LINES:
            continue
        for one, other in zip(before, after, strict=False):
            left, right = hunk.lines[one].text, hunk.lines[other].text
            if max(len(left), len(right)) <= _MOST_CHARACTERS:
                found |= zip((one, other), _marks(left, right), strict=False)
    return {at: spans for at, spans in found.items() if spans}


def _marks(left: str, right: str) -> tuple[Spans, Spans] | tuple[()]:
    words, others = _WORD.findall(left), _WORD.findall(right)
    matcher = SequenceMatcher(None, words, others, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return ()
    codes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return (
        tuple(_spans(words, ((code[1], code[2]) for code in codes))),
        tuple(_spans(others, ((code[3], code[4]) for code in codes))),
    )


def _spans(words: Sequence[str], parts: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    ends = [0]
    for word in words:
        ends.append(ends[-1] + len(word))
    return ((ends[first], ends[last]) for first, last in parts if last > first)
