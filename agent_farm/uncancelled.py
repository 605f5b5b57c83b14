"""Work that a cancellation does not interrupt: a record that was begun gets written."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def finish(task: asyncio.Task[Any]) -> None:
    """Wait until `task` is done, whatever its result, and however often this is cancelled in the meantime."""
    while not task.done():
        with suppress(asyncio.CancelledError, Exception):
            await asyncio.shield(task)


async def to_its_end(work: Coroutine[Any, Any, object]) -> None:
    """Do the work whole; who is cancelled in the meantime, however often, learns of it afterwards."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    finally:
        await finish(task)


async def finished_result(work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.create_task(work)
    await finish(task)
    return task.result()
