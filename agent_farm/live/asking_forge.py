"""The forge, asked beside all else: a process that hangs holds up nobody, and ends with who looks."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

from agent_farm.server.launching import python_argv


async def refreshed(root: Path, ids: Iterable[str]) -> None:
    process = _refreshing(root, ids)
    try:
        await asyncio.to_thread(process.wait)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)


def _refreshing(root: Path, ids: Iterable[str]) -> subprocess.Popen[bytes]:
    """A process of its own: an interrupt ends it at once, with the `gh` that it waits for."""
    return subprocess.Popen(
        python_argv("agent_farm.cli.main", "pr", "--refresh", *sorted(ids)),
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
