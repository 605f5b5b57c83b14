"""The forge, asked beside all else: a process that hangs holds up nobody, and ends with who looks."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable
from pathlib import Path

from agent_farm.own_process import start_af


async def refreshed(root: Path, ids: Iterable[str]) -> None:
    process = start_af(root, "pr", "--refresh", *sorted(ids))  # SIGINT ends it with the `gh` it waits for
    try:
        await asyncio.to_thread(process.wait)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
