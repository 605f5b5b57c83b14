"""Asks the fleet's machines, in a process of its own, for as long as somebody watches."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent_farm.own_process import start_af

_LOOK_SECONDS = 2.0


async def asked_machines(root: Path, book: Path) -> None:
    """Runs until cancelled. Without a fleet it only looks for the fleet's file now and then.

    The answers are written into the book. A process that was killed is replaced by a new one.
    """
    while True:
        if await asyncio.to_thread(book.exists):
            process = start_af(root, "fleet", "look", "--follow", listens=True)
            try:
                await asyncio.to_thread(process.wait)
            finally:
                assert process.stdin
                process.stdin.close()  # this ends it, and every ssh below it
        await asyncio.sleep(_LOOK_SECONDS)
