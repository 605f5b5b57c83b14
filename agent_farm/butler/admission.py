"""Who may run now, who waits, and who is turned away at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Admission:
    """`slots` sessions run at a time, in the order they came; up to `queue` more wait."""

    def __init__(self, slots: int, queue: int) -> None:
        self.slots = slots
        self.queue = queue
        self.accepting = True
        self._semaphore = asyncio.Semaphore(slots)
        self._admitted = 0

    @property
    def running(self) -> int:
        return min(self._admitted, self.slots)

    @property
    def waiting(self) -> int:
        return max(0, self._admitted - self.slots)

    def refusal(self, trigger_source: str) -> str | None:
        """Why a trigger cannot be accepted now; None when it can."""
        if not self.accepting:
            return "Not accepting triggers: the butler is shutting down"
        if self._admitted < self.slots:
            return None
        if trigger_source == "trigger":
            # The session that asks holds a slot until it is answered: waiting for one could last for ever.
            return f"All {self.slots} slots are taken; a session that triggers another cannot wait for one"
        if self.waiting >= self.queue:
            return f"The queue is full: {self.waiting} sessions wait already"
        return None

    def enter(self) -> None:
        """Count a trigger that was not refused, before anything else can run."""
        self._admitted += 1

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a slot after `enter`, first come first served."""
        async with self._semaphore:
            yield

    def leave(self) -> None:
        self._admitted -= 1
