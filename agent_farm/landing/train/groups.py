"""How many branches to check together, so that the expected number of checks is lowest.

This is group testing with unequal odds: each branch fails on its own with its own probability. A group that
passes has landed. If one fails, a part of it is checked next: if that part passes, the rest is known to fail
without a check; if it fails, nothing is known about the rest. Only leading parts of the row are checked, so
dynamic programming over the row finds the best plan of this kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

MOST = 24  # branches considered; more would hardly change the first step
_LEAST, _GREATEST = 0.005, 0.95


def first_group(risks: Sequence[float], suspects: int = 0) -> int:
    """How many from the front of the row to check next; the first `suspects` have failed together."""
    row = tuple(min(max(round(risk, 2), _LEAST), _GREATEST) for risk in risks[: max(MOST, suspects)])
    return _plan(row).best(0, suspects)[1]


def expected_checks(risks: Sequence[float]) -> float:
    return _plan(tuple(risks)).best(0, 0)[0]


@lru_cache(maxsize=512)
def _plan(row: tuple[float, ...]) -> _Plan:
    return _Plan(row)


class _Plan:
    """The best plan for every part of one row. Results are kept: most rows are asked for many times."""

    def __init__(self, row: tuple[float, ...]) -> None:
        self.size = len(row)
        self.good = [[1.0] for _ in range(self.size + 1)]  # good[i][k]: the chance that k from i on pass
        for start in range(self.size):
            for risk in row[start:]:
                self.good[start].append(self.good[start][-1] * (1 - risk))
        self.known: dict[tuple[int, int], tuple[float, int]] = {}

    def best(self, start: int, suspects: int) -> tuple[float, int]:
        """The expected checks from `start` on, and the size of the next; `suspects` as in `first_group`."""
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
