"""Work that a cancellation does not cut short: what has begun to be written down is written down."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def finish(task: asyncio.Task[Any]) -> None:
    """Until `task` is done, whatever it came to, and however often this is cancelled meanwhile."""
    while not task.done():
        with suppress(asyncio.CancelledError, Exception):
            await asyncio.shield(task)


async def finished_result(work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.create_task(work)
    await finish(task)
    return task.result()
