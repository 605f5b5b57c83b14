"""How far a long step is: one line, redrawn in place, on a terminal; a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from threading import Lock
from typing import TextIO

from msgspec import Struct, field

from agent_farm.cli.output import narrate, printable

_LONG_SECONDS = 1.0  # shorter steps are not reported
_REDRAW_SECONDS = 0.1
_LINE_SECONDS = 10.0
_ERASE = "\r\x1b[K"


class Progress(Struct):
    """Of one command. `step` may be called from any thread; call `clear` before printing anything else."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    clock: Callable[[], float] = time.monotonic
    _what: str = ""
    _begin: float = 0.0
    _told: float = 0.0
    _is_drawn: bool = False
    _lock: Lock = field(default_factory=Lock)

    def step(self, what: str, done: int, total: int) -> None:
        """`done` of `total` are finished; a step begins with 0."""
        with self._lock:
            now = self.clock()
            if what != self._what or done == 0:
                self._what, self._begin, self._told = what, now, now
            pause = _REDRAW_SECONDS if self.stream.isatty() else _LINE_SECONDS
            if done == 0 or done >= total or now - self._begin < _LONG_SECONDS or now - self._told < pause:
                return
            self._told = now
            self._tell(f"{what}: {done} of {total}, {_pace(done, total, now - self._begin)}")

    def clear(self) -> None:
        with self._lock:
            if self._is_drawn:
                self.stream.write(_ERASE)
                self.stream.flush()
                self._is_drawn = False

    def _tell(self, line: str) -> None:
        if not self.stream.isatty():
            narrate(printable(line))
            return
        self.stream.write(_ERASE + printable(line))
        self.stream.flush()
        self._is_drawn = True


def _pace(done: int, total: int, seconds: float) -> str:
    rate = done / seconds
    pace = f"{rate:.0f}/s" if rate >= 1 else f"{seconds / done:.0f} s each"
    left = round((total - done) / rate)
    return f"{pace}, {left // 60} min {left % 60} s left" if left >= 60 else f"{pace}, {left} s left"
