"""Ending every process below this one, adopted orphans included; standard library only."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress

_POLL_SECONDS = 0.02


def end_children(grace: float) -> None:
    """TERM for `grace` seconds, then KILL, then whatever that hands to us, until none is left."""
    deadline = time.monotonic() + grace
    while children := live_children():
        number = signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL
        for pid in children:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        if time.monotonic() > deadline + 5:
            return
        time.sleep(_POLL_SECONDS)


def live_children() -> list[int]:
    """Children of this process that have not ended; ended ones are collected. Empty without /proc."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    if not sys.platform.startswith("linux"):
        return []
    me, found = os.getpid(), []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError, IndexError), open(f"/proc/{entry}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
                if int(fields[1]) == me and fields[0] != b"Z":
                    found.append(int(entry))
    return found
