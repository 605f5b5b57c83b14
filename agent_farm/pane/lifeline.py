"""What ties a runtime and its descendants to the launcher. Linux only; elsewhere nothing happens."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def lifeline() -> Callable[[], None]:
    """To be called in the child: the kernel then kills it with its parent, even one killed with -9.

    Elsewhere a runtime still gets the SIGHUP that the kernel sends when the leader of a terminal's
    session ends, and processes.json says where one that ignores it can be found.
    """
    prctl = _prctl()
    return lambda: prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def adopt_orphans(adopt: bool) -> None:
    """Orphaned descendants become our children: in a container without an init, nobody else buries them."""
    _prctl()(_PR_SET_CHILD_SUBREAPER, int(adopt))


def _prctl() -> Callable[[int, int], None]:
    if not sys.platform.startswith("linux"):
        return _nothing
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return _nothing
    return lambda option, value: prctl(option, value, 0, 0, 0)


def _nothing(option: int, value: int) -> None:
    pass
