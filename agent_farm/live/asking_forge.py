"""Asks the forge in a process of its own, so that one that hangs delays nobody; it ends with the viewer."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable
from pathlib import Path

from agent_farm.own_process import start_af


async def refreshed(root: Path, ids: Iterable[str]) -> None:
    process = start_af(root, "pr", "--refresh", *sorted(ids))  # SIGINT ends it and the `gh` it waits for
    try:
        await asyncio.to_thread(process.wait)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
