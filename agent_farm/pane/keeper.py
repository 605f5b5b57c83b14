"""The process between launcher and runtime: if launcher or keeper is killed, the other one cleans up.

On Linux, the kernel hands the runtime's orphans to the keeper, even those in sessions of their own, and the
keeper's orphans to the launcher. The launcher becomes the user's shell, so it cannot be the keeper itself.
"""

from __future__ import annotations

import os
import time

from agent_farm.descendants import adopt_orphans, end_children, lifeline
from agent_farm.lean import signal, suppress
from agent_farm.pane.signals import HungUp, SignalsHeld, ignore_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

GRACE_SECONDS = 2.0
_KEEPER_SECONDS = 2 * GRACE_SECONDS + 1
_POLL_SECONDS = 0.02
_HUNG_UP = 128


class Keeper:
    """Runs `work` in a process of its own; and there `clean_up`, if that is told to end before."""

    def __init__(self, work: Callable[[], None], clean_up: Callable[[], None]) -> None:
        self._work, self._clean_up = work, clean_up
        self._pid = 0
        self._status: int | None = None

    def run(self) -> int:
        """The wait status: 0 if `work` came to its end. After any other, nothing of it is running."""
        adopt_orphans(True)
        launcher, hear_its_end = os.getpid(), lifeline(signal.SIGHUP)
        with SignalsHeld():  # no signal may arrive before the process id is known
            self._pid = os.fork()
            if self._pid == 0:
                self._keep(launcher, hear_its_end)
        while self._status is None:
            self._collect(0)
        if _has_left_something(self._status):
            end_children(GRACE_SECONDS)
        adopt_orphans(False)
        self._pid = 0
        return self._status

    def end(self) -> None:
        """End an interrupted run: the keeper ends its jobs; if it cannot, that is done here."""
        if self._pid == 0:
            return
        deadline = time.monotonic() + _KEEPER_SECONDS
        self._tell(signal.SIGHUP)
        while self._status is None:
            self._collect(os.WNOHANG)
            if time.monotonic() > deadline:
                self._tell(signal.SIGKILL)
            time.sleep(0 if self._status is not None else _POLL_SECONDS)
        if _has_left_something(self._status):
            end_children(GRACE_SECONDS)

    def _keep(self, launcher: int, hear_its_end: Callable[[], object]) -> NoReturn:
        code = 1
        try:
            adopt_orphans(True)
            hear_its_end()
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            if os.getppid() != launcher:  # it ended before the kernel was told to signal us
                raise HungUp(signal.SIGHUP)
            self._work()
            code = 0
        except HungUp as hangup:
            ignore_signals()
            self._clean_up()
            code = _HUNG_UP + hangup.number
        finally:
            os._exit(code)

    def _collect(self, options: int) -> None:
        """Any other process that ends is an orphan that we adopted."""
        pid, status = os.waitpid(-1, options)
        if pid == self._pid:
            self._status = status

    def _tell(self, number: int) -> None:
        if self._status is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)
                os.kill(self._pid, signal.SIGCONT)


def _has_left_something(status: int) -> bool:
    """Not if the keeper has cleaned up itself: what then remains was started to outlive it."""
    return os.WIFSIGNALED(status) or 0 < os.WEXITSTATUS(status) <= _HUNG_UP
