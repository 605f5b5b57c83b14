"""Runs a foreground job: its own process group, the terminal, its wait status."""

from __future__ import annotations

import os
import time

from agent_farm.descendants import lifeline
from agent_farm.lean import signal, suppress
from agent_farm.pane.signals import default_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_TERMINAL = 0
_POLL_SECONDS = 0.02


class CannotStart(Exception):
    """The program could not be executed; the message says why."""


def start_job(
    argv: Sequence[str], env: Mapping[str, str], cwd: str, *, started: Callable[[int], None]
) -> int:
    """Run `argv` in the foreground. `started` gets the process id before the program runs."""
    go_read, go_write = os.pipe()
    error_read, error_write = os.pipe()
    tie_to_parent = lifeline(signal.SIGKILL)
    pid = os.fork()
    if pid == 0:
        os.close(go_write)  # otherwise the child would wait for itself after the keeper's death
        tie_to_parent()
        _become(argv, env, cwd, go_read, error_write)
    os.close(go_read)
    os.close(error_write)
    os.setpgid(pid, pid)
    give_terminal(pid)
    try:
        started(pid)
        os.write(go_write, b"1")
    finally:
        os.close(go_write)  # not told to go, the child ends
    with open(error_read, "rb") as pipe:
        problem = pipe.read()
    if problem:
        os.waitpid(pid, 0)
        take_terminal()
        raise CannotStart(problem.decode("utf-8", "replace"))
    return pid


def _become(argv: Sequence[str], env: Mapping[str, str], cwd: str, go: int, report: int) -> None:
    """In the child: never returns. Waits for its group and the terminal, then runs the program."""
    try:
        if os.read(go, 1) != b"1":
            os._exit(127)
        default_signals()
        os.chdir(cwd)
        os.execvpe(argv[0], list(argv), dict(env))
    except BaseException as error:
        text = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        os.write(report, text.encode("utf-8", "replace"))
    os._exit(127)


def wait_job(pid: int) -> int:
    """The wait status. A job that stops (Ctrl-Z) is continued: there is no prompt to continue it from."""
    while True:
        ended, status = os.waitpid(-1, os.WUNTRACED)
        if ended != pid:  # an orphan that we adopted
            continue
        if not os.WIFSTOPPED(status):
            return status
        time.sleep(_POLL_SECONDS)
        give_terminal(pid)
        with suppress(OSError):
            os.killpg(pid, signal.SIGCONT)


def give_terminal(group: int) -> None:
    """SIGTTOU is ignored by the launcher, so this also works from the background."""
    with suppress(OSError):
        os.tcsetpgrp(_TERMINAL, group)


def take_terminal() -> None:
    give_terminal(os.getpgrp())
