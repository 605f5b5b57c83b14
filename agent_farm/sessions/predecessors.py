"""Makes a new server wait until the last processes of a killed server's sessions have ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from agent_farm.disk import file_lock
from agent_farm.errors import LockTaken

POLL_SECONDS = 0.05


class SessionsLock:
    """Held while a session of this process is running, and by each one's guard until its last process has
    ended.

    So a server that follows one that was killed starts nothing beside what that one left running.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stack = ExitStack()
        self._descriptor: int | None = None
        self._holders = 0
        self._line = asyncio.Lock()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[int]:
        async with self._line:
            while self._descriptor is None:
                try:
                    self._descriptor = self._stack.enter_context(file_lock(self._file, wait=0))
                except LockTaken:
                    await asyncio.sleep(POLL_SECONDS)
            self._holders += 1
        try:
            yield self._descriptor
        finally:
            self._holders -= 1
            if self._holders == 0:
                self._stack.close()
                self._descriptor = None
