"""When somebody last wanted something of the server, and who is still being answered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Activity:
    """An open page, a stream and a tool call that takes long are requests that have not ended."""

    clock: Callable[[], float] = time.monotonic
    _open: int = 0
    _last: float = field(init=False)

    def __post_init__(self) -> None:
        self._last = self.clock()

    @contextmanager
    def request(self) -> Iterator[None]:
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            self._last = self.clock()

    @property
    def quiet_seconds(self) -> float:
        return 0.0 if self._open else self.clock() - self._last
