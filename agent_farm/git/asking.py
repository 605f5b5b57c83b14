"""Questions asked side by side, none of which is waited for once the time is over."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from threading import Thread
from typing import Generic, TypeVar

from agent_farm.errors import AgentFarmError

K = TypeVar("K")
V = TypeVar("V")


class Asking(Generic[K, V]):
    """They are asked in the order given, from the moment this is made.

    What fails, or comes later than `until` (of the monotonic clock), has no answer: it is not known. A
    program that not even a kill ends (its disk hangs, say) holds up nobody.
    """

    def __init__(
        self, questions: Mapping[K, Callable[[], V]], *, until: float, workers: int | None = None
    ) -> None:
        self._waiting = list(questions.items())[::-1]
        self._until = until
        self._answers: dict[K, V] = {}
        count = min(len(self._waiting), workers or max(2, os.cpu_count() or 2))
        # Plain threads: a pool from the standard library would load `logging` on the way of `af status`.
        self._threads = [
            Thread(target=copy_context().run, args=(self._work,), daemon=True) for _ in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def answers(self) -> dict[K, V]:
        """Once all have answered, or the time is over."""
        for thread in self._threads:
            thread.join(max(0.0, self._until - time.monotonic()))
        return dict(self._answers)

    def _work(self) -> None:
        while self._waiting and time.monotonic() < self._until:
            try:
                name, question = self._waiting.pop()
                self._answers[name] = question()
            except (IndexError, AgentFarmError, OSError):  # another thread took the last one; or no answer
                continue
