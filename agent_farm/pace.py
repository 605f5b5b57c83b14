"""How far long steps are, and when they will be over. Also used in the pane: standard library only."""

from __future__ import annotations

import time
from collections.abc import Callable

_LONG_SECONDS = 1.0  # shorter steps are not reported

Step = Callable[[str, float, int], None]  # what is being done, how many are done, and of how many


class Pace:
    """Of steps that may take turns: "Looking" at the first hundred, "Ending" them, "Looking" at the next."""

    def __init__(self) -> None:
        self._begun: dict[str, tuple[float, float]] = {}

    def line(self, what: str, done: float, total: int, now: float) -> str | None:
        """`Ending: 50 of 100, 25/s, 2 s left`; None while there is nothing to say.

        A step begins with 0, or the number that was done before.
        """
        if done == 0:
            self._begun.pop(what, None)
        begin, first = self._begun.setdefault(what, (now, done))
        seconds = now - begin
        if seconds < _LONG_SECONDS or not first < done < total:
            return None
        rate = (done - first) / seconds
        pace = f"{rate:,.0f}/s" if rate >= 1 else f"{1 / rate:.0f} s each"
        left = round((total - done) / rate)
        rest = f"{left // 60} min {left % 60} s" if left >= 60 else f"{left} s"
        return f"{what}: {int(done):,} of {total:,}, {pace}, {rest} left"


def now_and_then(tell: Callable[[str], object], seconds: float) -> Step:
    """A step that is told of as often as that, in lines."""
    pace, told = Pace(), time.monotonic()

    def step(what: str, done: float, total: int) -> None:
        nonlocal told
        now = time.monotonic()
        line = pace.line(what, done, total, now)
        if line and now - told >= seconds:
            told = now
            tell(line)

    return step
