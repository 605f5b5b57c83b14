"""What the user sees while an agent works: its own words, and a sign of life when it is silent."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

_STDERR_KEPT = 16_384
_SILENCE_SECONDS = 15.0
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)")


class Progress:
    def __init__(self, narrate: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._narrate, self._clock = narrate, clock
        self._started = self._last = clock()
        self._stderr = bytearray()

    def show(self, text: str | None) -> None:
        if text and text.strip():
            self._last = self._clock()
            self._narrate(text.rstrip())

    def take_stderr(self, line: bytes) -> None:
        self._stderr = (self._stderr + line)[-_STDERR_KEPT:]
        self.show(_plain(line.decode("utf-8", "replace")))

    def tick(self) -> None:
        now = self._clock()
        if now - self._last >= _SILENCE_SECONDS:
            self.show(f"… still at work after {now - self._started:.0f} s")

    @property
    def stderr(self) -> str:
        return _plain(self._stderr.decode("utf-8", "replace"))


def _plain(text: str) -> str:
    """Without colours and cursor movements."""
    return _ESCAPE.sub("", text)
