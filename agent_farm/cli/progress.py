"""How far a long step is: one line, redrawn in place, on a terminal; a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TextIO

from msgspec import Struct, field

from agent_farm.cli.output import narrate, printable
from agent_farm.pace import Pace

_REDRAW_SECONDS = 0.1
_LINE_SECONDS = 10.0
_ERASE = "\r\x1b[K"


class Progress(Struct):
    """Of one command. `step` may be called from any thread; print anything else within `aside`."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    clock: Callable[[], float] = time.monotonic
    _pace: Pace = field(default_factory=Pace)
    _told: float | None = None
    _is_drawn: bool = False
    _lock: RLock = field(default_factory=RLock)

    def step(self, what: str, done: float, total: int) -> None:
        """`done` of `total` are finished; a step begins with 0."""
        if not self._lock.acquire(blocking=False):
            return  # whoever prints may wait for its reader, and who works must not wait for that
        try:
            now = self.clock()
            line = self._pace.line(what, done, total, now)
            if self._told is None:
                self._told = now
            pause = _REDRAW_SECONDS if self.stream.isatty() else _LINE_SECONDS
            if line is not None and now - self._told >= pause:
                self._told = now
                self._tell(line)
        finally:
            self._lock.release()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """The line is erased, and not drawn again in the meantime."""
        with self._lock:
            if self._is_drawn:
                self.stream.write(_ERASE)
                self.stream.flush()
                self._is_drawn = False
            yield

    def clear(self) -> None:
        with self.aside():
            pass

    def _tell(self, line: str) -> None:
        if not self.stream.isatty():
            narrate(printable(line))
            return
        self.stream.write(_ERASE + printable(line))
        self.stream.flush()
        self._is_drawn = True
