"""How risky it is to land a result unread: a number to sort by, and the reasons in words."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

from agent_farm.builders.proof import Proof

_STATES = {"red": 40, "conflicts": 40, "uncommitted": 20, "stale": 15, "empty": 5, "flagged": 0, "proven": 0}
_FLAGS = {"secret": 30, "test-deleted": 20, "test-skipped": 20, "test-weakened": 20, "exit-forced": 20}
_FLAG, _MOST_FLAGS = 10, 60
_UNPROVEN = 25
_OVERLAP, _MOST_OVERLAPS = 8, 24


def risk_of(proof: Proof | None, *, lines: int, overlaps: Collection[str]) -> tuple[int, tuple[str, ...]]:
    found = list(_reasons(proof, lines, overlaps))
    return sum(points for points, _ in found), tuple(text for _, text in found if text)


def _reasons(proof: Proof | None, lines: int, overlaps: Collection[str]) -> Iterator[tuple[int, str]]:
    if proof is None:
        yield _UNPROVEN, "no check has run on it"
    else:
        said = f"{proof.state}: {proof.reason}" if proof.reason else proof.state
        yield _STATES[proof.state], "" if proof.passed else said
        kinds = dict.fromkeys(flag.kind for flag in proof.flags)
        points = sum(_FLAGS.get(kind, _FLAG) for kind in kinds)
        yield min(points, _MOST_FLAGS), f"flags: {', '.join(kinds)}" if kinds else ""
    yield round(6 * math.log2(1 + lines / 25)), f"{lines} changed lines" if lines > 200 else ""
    shared = f"shares files with {', '.join(sorted(overlaps)[:3])}" if overlaps else ""
    yield min(_OVERLAP * len(overlaps), _MOST_OVERLAPS), shared
