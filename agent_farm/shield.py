"""Holds off Ctrl-C, a closed terminal and `kill` until work that must not be interrupted is done."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

_HELD_OFF = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Shield:
    """Signals wait from `hold` to the end of the block, which then delivers the first that came.

    Outside the main thread, which gets all signals, this does nothing.
    """

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}
        self._came: int | None = None

    def hold(self) -> None:
        with suppress(ValueError):  # not the main thread
            for number in _HELD_OFF:
                if number not in self._before and signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._note)

    def __enter__(self) -> Shield:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        while self._before:
            number, handler = self._before.popitem()
            signal.signal(number, handler)
        if self._came is not None:
            os.kill(os.getpid(), self._came)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came = self._came or number
