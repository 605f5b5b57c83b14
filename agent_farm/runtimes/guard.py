"""Stands between a headless run and its starter, so that no process of the run outlives either.

Run as a file: `guard.py LIFELINE STATUS GRACE SCRATCH argv…`. It starts argv in a process group of its own,
writes that group's id, and later the wait status, to the descriptor STATUS. It ends the whole group when argv
has ended, or when the descriptor LIFELINE is closed, as happens even if the starter is killed. Descendants
that left the group are handed to the guard by the kernel (Linux), and ended, too. The directory SCRATCH (""
for none) is removed if nobody else can do it any more.

The guard is two processes: the inner one does all this, and if either is killed, the other one ends what is
left.
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

if __name__ == "__main__":  # run as a file: only the standard library is on the path so far
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from agent_farm.descendants import adopt_orphans, end_children, lifeline

_POLL_SECONDS = 0.02
_CANNOT_START = 127


def main(argv: list[str]) -> int:
    lifeline, status, grace, scratch = int(argv[0]), int(argv[1]), float(argv[2]), argv[3]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only the closed lifeline ends it
    adopts = adopt_orphans(True)
    outer_end, outer = os.pipe()
    inner = os.fork()
    if inner == 0:
        os.close(outer)  # so that the inner end is closed once the outer process has ended
        code = 1
        try:
            code = _run(argv[4:], lifeline, outer_end, status, grace, scratch)
        finally:
            os._exit(code)
    os.close(outer_end)
    code = os.waitstatus_to_exitcode(_wait_for(inner))
    if code not in (0, _CANNOT_START):
        end_children(grace)
        if adopts:  # otherwise the starter has to end the group
            _say(status, f"ended {-signal.SIGKILL}")
        _remove_if_alone(scratch, lifeline)
    return abs(code)


def _run(argv: list[str], lifeline: int, outer_end: int, status: int, grace: float, scratch: str) -> int:
    adopts = adopt_orphans(True)
    try:
        child = subprocess.Popen(argv, process_group=0, close_fds=True, preexec_fn=_before_exec())
    except OSError as error:
        _say(status, f"failed {error.strerror}")
        return _CANNOT_START
    _say(status, f"group {child.pid}")
    _wait(child, lifeline, outer_end)
    _end_group(child, grace)
    if adopts:
        end_children(grace)
    _say(status, f"ended {child.returncode}")
    _remove_if_alone(scratch, lifeline)
    return 0


def _wait_for(inner: int) -> int:
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == inner:  # others are orphans that we adopted
            return status


def _say(status: int, word: str) -> None:
    with suppress(OSError):
        os.write(status, f"{word}\n".encode())


def _before_exec() -> Callable[[], None]:
    """Resets signals to their defaults, and makes the kernel end the child if the guard is killed."""
    guard, tie_to_guard = os.getpid(), lifeline(signal.SIGKILL)

    def prepare() -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        tie_to_guard()
        if os.getppid() != guard:  # the guard was killed before the kernel was told
            os._exit(1)

    return prepare


def _wait(child: subprocess.Popen[bytes], *ties: int) -> None:
    """Until the child has ended, or whoever holds the other end of one of `ties` has."""
    read, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake)
    while child.poll() is None:
        ready, _, _ = select.select([*ties, read], [], [], 1.0)
        if any(tie in ready for tie in ties):
            return
        if read in ready:
            os.read(read, 512)


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
    except PermissionError:  # on macOS, for a group of zombies
        return False
    return True


def _reap(child: subprocess.Popen[bytes]) -> None:
    """Collect adopted zombies, but not the child, whose status Popen has to see."""
    if child.returncode is None:
        return
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _remove_if_alone(scratch: str, lifeline: int) -> None:
    """The starter of a run removes its directory, unless the starter is gone."""
    if not scratch or not select.select([lifeline], [], [], 0)[0]:
        return
    import shutil

    deadline = time.monotonic() + 2.0
    while os.path.lexists(scratch) and time.monotonic() < deadline:
        shutil.rmtree(scratch, ignore_errors=True)  # repeated, because something may still have been written
        time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
