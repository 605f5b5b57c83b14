"""What ties a process to its parent. Linux only; elsewhere nothing happens."""

from __future__ import annotations

import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def lifeline(number: int) -> Callable[[], None]:
    """To be called in the child: the kernel then sends it `number` when its parent ends, by kill -9 too.

    Elsewhere a runtime still gets the SIGHUP that the kernel sends when the leader of a terminal's
    session ends, and processes.json says where one that ignores it can be found.
    """
    if not sys.platform.startswith("linux"):
        return _nothing
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return _nothing
    return lambda: prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)


def _nothing() -> None:
    pass
