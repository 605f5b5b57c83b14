"""The slots of one butler, for all processes of the farm: locks that the kernel frees with their holder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from agent_farm.disk import file_lock
from agent_farm.errors import LockTaken

POLL_SECONDS = 0.05


class Slot:
    """Held from construction to `release`. Children that are given `descriptor` hold it as well."""

    def __init__(self, held: ExitStack, descriptor: int) -> None:
        self._held = held
        self.descriptor = descriptor

    def release(self) -> None:
        self._held.close()


class Slots:
    """`count` of them. Processes that wait for one take turns; within a process, first come first served."""

    def __init__(self, locks: Path, butler: str, count: int) -> None:
        self.count = count
        self._files = [locks / f"slot-{butler}-{number}.lock" for number in range(count)]
        self._turn = locks / f"slot-{butler}-next.lock"
        self._line = asyncio.Lock()

    def take(self, *, in_turn: bool = True) -> Slot | None:
        """A free slot; `in_turn` leaves it to another process that waits already."""
        if not in_turn:
            return self._any()
        turn = _hold(self._turn)
        if turn is None:
            return None
        try:
            return self._any()
        finally:
            turn.release()

    async def wait(self) -> Slot:
        async with self._line:
            turn = await _until(lambda: _hold(self._turn))
            try:  # only who has the turn looks, so that a busy process cannot keep a slot for itself
                return await _until(self._any)
            finally:
                turn.release()

    def _any(self) -> Slot | None:
        return next(filter(None, map(_hold, self._files)), None)


def _hold(path: Path) -> Slot | None:
    stack = ExitStack()
    try:
        return Slot(stack, stack.enter_context(file_lock(path, wait=0)))
    except LockTaken:
        return None


async def _until(attempt: Callable[[], Slot | None]) -> Slot:
    while (slot := attempt()) is None:  # noqa: ASYNC110  (no event crosses processes)
        await asyncio.sleep(POLL_SECONDS)
    return slot
