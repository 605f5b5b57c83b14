"""Ends the server: asks first, lets it drain, and kills it only when told to."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from agent_farm.disk import is_locked
from agent_farm.errors import TimedOut
from agent_farm.server.address import load_address, server_files, supervisor_of

PATIENCE = 20.0
_PROC = Path("/proc")


def stop_server(root: Path, *, now: bool = False) -> bool:
    """Returns whether there was one. `now` does not wait for its sessions, which end with it."""
    files = server_files(root)
    address = load_address(files)
    if address is None or not is_locked(files.lock):
        return False
    known = {supervisor_of(files), address.supervisor, address.pid}
    pids = {pid for pid in known if pid and _is_servers(pid)}
    for number in (signal.SIGTERM, signal.SIGKILL) if now else (signal.SIGTERM,):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if _is_gone(files.lock, 1.0 if now and number == signal.SIGTERM else PATIENCE):
            return True
    named = f" (pid {', '.join(map(str, sorted(pids)))})" if pids else ""
    raise TimedOut(f"The server{named} has not ended", hint="af butler stop --now")


def _is_servers(pid: int) -> bool:
    """Whether it is a server or its supervisor: after a kill, the pid may be another process's."""
    try:
        return b"agent_farm.server.serving" in (_PROC / str(pid) / "cmdline").read_bytes()
    except FileNotFoundError:
        return not (_PROC / "self").exists()  # not Linux: this cannot be checked


def _is_gone(lock: Path, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while is_locked(lock):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
