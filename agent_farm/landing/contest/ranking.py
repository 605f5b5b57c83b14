"""Estimates which of several builders is right, from whose tests pass on whose code.

Nobody knows whose code is right, nor whose tests are. So every combination is weighed by how well it explains
the results: tests of right code pass on right code and catch some of the wrong code; tests of wrong code may
demand its mistake, and then fail on right code. A majority alone decides nothing, and neither does a single
strict test. The numbers below are guesses; decision 150 says what was measured with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod

from msgspec import Struct

MOST = 10  # candidates: every combination is weighed, and each candidate doubles their number
_RIGHT = 0.5  # before any result is known
_FINDS = (0.4, 0.95)  # how much of wrong code weak and strong tests catch
_ASKS_FOR_IT = 0.15  # chance that tests of wrong code demand its mistake
_SAME_MISTAKE = 0.3  # chance that two wrong ones share it
_BRITTLE = 0.05  # chance that tests only pass with their own code
_SLIP = 0.02
_FLAGGED = 0.5  # factor for each kind of flag
_MOST_FLAGS = 3

Matrix = Mapping[tuple[str, str], bool]


class Standing(Struct, frozen=True):
    """What is known about one builder apart from the others' tests.

    `against` says why its work is not proven (None if it is); `flags` are kinds, `lines` counts changed
    lines.
    """

    id: str
    against: str | None = None
    flags: tuple[str, ...] = ()
    lines: int = 0
    cost: float = 0.0


class Ranked(Struct, frozen=True):
    """`chance` is how likely it is right, None if it is not proven. `reasons` explain the rank in full."""

    id: str
    rank: int
    chance: float | None
    reasons: tuple[str, ...]


def ranked(standings: Sequence[Standing], passed: Matrix) -> list[Ranked]:
    """The best first. `passed[author, one]` says whether the author's new tests pass on the code of the
    other.

    Builders that are not proven come last. Between equal chances, fewer flags decide, then fewer lines, then
    cost.
    """
    proven = [one for one in standings if one.against is None]
    chances = chances_of(proven, passed)

    def key(one: Standing) -> tuple[bool, float, int, int, float]:
        chance = round(chances.get(one.id, 0.0), 2)
        return (one.against is not None, -chance, len(one.flags), one.lines, one.cost)

    order = sorted(standings, key=key)
    return [
        Ranked(one.id, rank, chances.get(one.id), tuple(_reasons(one, order, passed)))
        for rank, one in enumerate(order, 1)
    ]


def chances_of(proven: Sequence[Standing], passed: Matrix) -> dict[str, float]:
    """How likely each one is right."""
    if not proven:
        return {}
    ids = [one.id for one in proven]
    odds = [_RIGHT / (1 - _RIGHT) * _FLAGGED ** min(len(one.flags), _MOST_FLAGS) for one in proven]
    weights = {}
    for way in product((True, False), repeat=len(ids)):
        right = dict(zip(ids, way, strict=True))
        before = prod(some if is_right else 1.0 for some, is_right in zip(odds, way, strict=True))
        weights[way] = before * prod(_explained(author, right, passed) for author in ids)
    whole = sum(weights.values())
    return {
        id: sum(weight for way, weight in weights.items() if way[number]) / whole
        for number, id in enumerate(ids)
    }


def _explained(author: str, right: Mapping[str, bool], passed: Matrix) -> float:
    """How likely the results of the author's tests are, if exactly those in `right` are right."""
    seen = [(right[id], passed[author, id]) for id in right if (author, id) in passed]

    def all_of(on_right: float, on_wrong: float) -> float:
        """The chance of these results if each test passes with the given chance."""
        chances = ((on_right if is_right else on_wrong, green) for is_right, green in seen)
        return prod(chance if green else 1 - chance for chance, green in chances)

    same = 0.0 if right[author] else _SAME_MISTAKE
    sound = sum(all_of(1 - _SLIP, 1 - finds * (1 - same)) for finds in _FINDS) / len(_FINDS)
    if not right[author]:
        sound = _ASKS_FOR_IT * all_of(_SLIP, _SAME_MISTAKE) + (1 - _ASKS_FOR_IT) * sound
    return _BRITTLE * all_of(_SLIP, _SLIP) + (1 - _BRITTLE) * sound


def _reasons(one: Standing, all: Sequence[Standing], passed: Matrix) -> Iterator[str]:
    if one.against is not None:
        yield f"not proven: {one.against}"
        return
    others = [other.id for other in all if other.id != one.id]
    judged = [id for id in others if (id, one.id) in passed]
    failed = [id for id in judged if not passed[id, one.id]]
    if not judged:
        yield "there were no other builders' new tests to run on it"
    elif failed:
        yield f"fails the new tests of {', '.join(failed)} ({len(failed)} of {len(judged)})"
    else:
        yield f"passes the new tests of {', '.join(judged)}"
    tested = [id for id in others if (one.id, id) in passed]
    finds = [id for id in tested if not passed[one.id, id]]
    if finds:
        yield f"its own new tests fail on the code of {', '.join(finds)}"
    elif tested:
        yield "its own new tests pass on the others' code, too"
    elif others:
        yield "has no new tests to run on the others' code"
    if one.flags:
        yield f"flags: {', '.join(one.flags)}"
