"""Stands between a headless run and whoever started it, so that no process of the run outlives either.

`guard.py LIFELINE STATUS GRACE SCRATCH argv…`, started as a file. It starts argv in a process group of its
own, writes that group's id and later the wait status to the descriptor STATUS, and ends the whole group when
argv has ended or when the descriptor LIFELINE is closed, which happens even when the starter is killed.
Descendants that left the group are handed to the guard by the kernel (Linux) and ended, too. The directory
SCRATCH ("" for none) is removed when nobody else is left to do it.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

if __name__ == "__main__":  # started as a file: nothing but the standard library is on the path yet
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from agent_farm.runtimes.descendants import end_children

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_POLL_SECONDS = 0.02


def main(argv: list[str]) -> int:
    lifeline, status, grace, scratch = int(argv[0]), int(argv[1]), float(argv[2]), argv[3]
    libc = _load_libc()
    adopts = libc is not None and libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only the lifeline ends it
    try:
        child = subprocess.Popen(argv[4:], process_group=0, close_fds=True, preexec_fn=_before_exec(libc))
    except OSError as error:
        os.write(status, f"failed {error.strerror}\n".encode())
        return 127
    os.write(status, f"group {child.pid}\n".encode())
    left_alone = _wait(child, lifeline)
    _end_group(child, grace)
    if adopts:
        end_children(grace)
    with suppress(OSError):
        os.write(status, f"ended {child.returncode}\n".encode())
    if left_alone and scratch:
        _remove(scratch)
    return 0


def _load_libc() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    return ctypes.CDLL(None)


def _before_exec(libc: Any) -> Callable[[], None]:
    """Signals as anywhere else; and the kernel ends the child should somebody kill the guard."""

    guard = os.getpid()

    def prepare() -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != guard:  # killed before the kernel was told
                os._exit(1)

    return prepare


def _wait(child: subprocess.Popen[bytes], lifeline: int) -> bool:
    """Until the child has ended (False) or the starter has gone (True)."""
    read, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake)
    while child.poll() is None:
        ready, _, _ = select.select([lifeline, read], [], [], 1.0)
        if lifeline in ready:
            return True
        if read in ready:
            os.read(read, 512)
    return lifeline in select.select([lifeline], [], [], 0)[0]


def _end_group(child: subprocess.Popen[bytes], grace: float) -> None:
    for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        deadline = time.monotonic() + seconds
        while _group_lives(child) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)


def _group_lives(child: subprocess.Popen[bytes]) -> bool:
    child.poll()
    _reap(child)
    try:
        os.killpg(child.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # macOS, for a group of zombies
        return False
    return True


def _reap(child: subprocess.Popen[bytes]) -> None:
    """Collect adopted zombies, but never the child, whose status Popen has to see."""
    if child.returncode is None:
        return
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _remove(scratch: str) -> None:
    import shutil

    deadline = time.monotonic() + 2.0
    while os.path.lexists(scratch) and time.monotonic() < deadline:
        shutil.rmtree(scratch, ignore_errors=True)  # again, where something was still being written
        time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
