"""How many of a row of branches are checked together, so that the checks expected in all are fewest.

Group testing with unequal odds: each branch fails by itself with a probability of its own. A group that
passes has landed. In one that fails, a part is checked next; once that part passes, the rest is known to
hold a failure without a check, and once it fails, nothing is known of the rest any more. Only leading parts
of the row are checked, so that dynamic programming over the row finds the best way in all of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

MOST = 24  # branches considered; further ones hardly change the first step
_LEAST, _GREATEST = 0.005, 0.95


def first_group(risks: Sequence[float], suspects: int = 0) -> int:
    """How many from the front of the row the next check takes; the first `suspects` together have failed."""
    row = tuple(min(max(round(risk, 2), _LEAST), _GREATEST) for risk in risks[: max(MOST, suspects)])
    return _plan(row).best(0, suspects)[1]


def expected_checks(risks: Sequence[float]) -> float:
    return _plan(tuple(risks)).best(0, 0)[0]


@lru_cache(maxsize=512)
def _plan(row: tuple[float, ...]) -> _Plan:
    return _Plan(row)


class _Plan:
    """All parts of one row. What was looked at is kept: most rows are asked for again and again."""

    def __init__(self, row: tuple[float, ...]) -> None:
        self.size = len(row)
        self.good = [[1.0] for _ in range(self.size + 1)]  # good[i][k]: the k from i on all pass
        for start in range(self.size):
            for risk in row[start:]:
                self.good[start].append(self.good[start][-1] * (1 - risk))
        self.known: dict[tuple[int, int], tuple[float, int]] = {}

    def best(self, start: int, suspects: int) -> tuple[float, int]:
        """The checks expected from `start` on, and the size of the next; `suspects` as in `first_group`."""
        if suspects == 1:  # known without a check
            return self.best(start + 1, 0)[0], 1
        if start >= self.size:
            return 0.0, 0
        found = self.known.get((start, suspects))
        if found is None:
            found = self.known[start, suspects] = min(self._ways(start, suspects))
        return found

    def _ways(self, start: int, suspects: int) -> list[tuple[float, int]]:
        good = self.good
        if not suspects:
            sizes = range(1, self.size - start + 1)
            return [(self._cost(start, size, good[start][size], 0), size) for size in sizes]
        fails = 1 - good[start][suspects]
        ways = []
        for size in range(1, suspects):
            passes = good[start][size] * (1 - good[start + size][suspects - size]) / fails
            ways.append((self._cost(start, size, passes, suspects - size), size))
        return ways

    def _cost(self, start: int, size: int, passes: float, left: int) -> float:
        return 1 + passes * self.best(start + size, left)[0] + (1 - passes) * self.best(start, size)[0]
