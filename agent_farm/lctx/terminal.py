"""An agent in the user's own terminal: its process group is put in front, as a shell does, and taken back."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from agent_farm.errors import AgentFarmError
from agent_farm.launch import Launch

_GRACE_SECONDS = 3.0


def run_in_terminal(launch: Launch) -> int:
    """Exit code of the agent, with stdin, stdout and stderr as they are here; negative for a signal.

    No terminal is needed for the start. On any way out the agent's process group is ended.
    """
    try:
        child = subprocess.Popen(launch.argv, cwd=launch.cwd, env=dict(launch.env), process_group=0)
    except OSError as error:
        raise AgentFarmError(f"{launch.argv[0]} cannot be started", why=error.strerror) from error
    try:
        with _terminal_for(child.pid) as terminal:
            return _wait(child, terminal)
    finally:
        _end_group(child)


@contextmanager
def _terminal_for(group: int) -> Iterator[int | None]:
    """The controlling terminal's descriptor with `group` in front, or None where there is no terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # or taking it back would stop this process
    in_front = os.tcgetpgrp(terminal)
    try:
        if in_front == os.getpgrp():
            _put_in_front(terminal, group)
        yield terminal
    finally:
        if in_front == os.getpgrp():
            with suppress(OSError):
                os.tcsetpgrp(terminal, in_front)
        signal.signal(signal.SIGTTOU, before)
        os.close(terminal)


def _put_in_front(terminal: int, group: int) -> None:
    with suppress(OSError):
        os.tcsetpgrp(terminal, group)
        os.killpg(group, signal.SIGCONT)  # it may have read too early, and been stopped for it


def _wait(child: subprocess.Popen[bytes], terminal: int | None) -> int:
    while True:
        pid, status = os.waitpid(child.pid, os.WUNTRACED)
        if pid and os.WIFSTOPPED(status):
            _stop_with_it(child.pid, terminal)
            continue
        child.returncode = os.waitstatus_to_exitcode(status)
        return child.returncode


def _stop_with_it(group: int, terminal: int | None) -> None:
    """The user suspended the agent: suspend this process too, so that the shell comes back, until `fg`."""
    if terminal is not None:
        with suppress(OSError):
            os.tcsetpgrp(terminal, os.getpgrp())
    os.kill(os.getpid(), signal.SIGSTOP)
    if terminal is not None:
        _put_in_front(terminal, group)
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGCONT)


def _end_group(child: subprocess.Popen[bytes]) -> None:
    for number, seconds in ((signal.SIGTERM, _GRACE_SECONDS), (signal.SIGKILL, 2.0)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            child.poll()
            if not _lives(child.pid):
                return
            time.sleep(0.02)


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):  # macOS says the latter of a group of zombies
        return False
    return True
