"""Ending the server: asked first, drained, and killed only when told to."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from agent_farm.errors import TimedOut
from agent_farm.server.address import is_held, load_address, server_files

PATIENCE = 20.0


def stop_server(root: Path, *, now: bool = False) -> bool:
    """Whether there was one to end. `now` does not wait for its sessions: they are ended with it."""
    files = server_files(root)
    address = load_address(files)
    if address is None or not is_held(files.lock):
        return False
    pids = {pid for pid in (_starter(files.lock), address.supervisor, address.pid) if pid}
    for number in (signal.SIGTERM, signal.SIGKILL) if now else (signal.SIGTERM,):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if _is_gone(files.lock, 1.0 if now and number == signal.SIGTERM else PATIENCE):
            return True
    raise TimedOut(
        f"The server (pid {', '.join(map(str, sorted(pids)))}) has not ended", hint="af butler stop --now"
    )


def _starter(lock: Path) -> int | None:
    """The supervisor, as the process that started it knows it."""
    text = lock.read_text()
    return int(text) if text.isdecimal() else None


def _is_gone(lock: Path, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while is_held(lock):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
