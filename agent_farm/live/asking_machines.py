"""Machines of the fleet, asked by a process beside all looks for as long as somebody watches."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent_farm.own_process import start_af

_LOOK_SECONDS = 2.0


async def asked_machines(root: Path, book: Path) -> None:
    """Until it is cancelled. Without a fleet that is a look for its file now and then.

    What the machines say is written into the book. The process is a new one when it was killed.
    """
    while True:
        if await asyncio.to_thread(book.exists):
            process = start_af(root, "fleet", "look", "--follow", listens=True)
            try:
                await asyncio.to_thread(process.wait)
            finally:
                assert process.stdin
                process.stdin.close()  # it ends, with every ssh below it
        await asyncio.sleep(_LOOK_SECONDS)
