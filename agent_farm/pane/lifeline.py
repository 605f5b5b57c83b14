"""A runtime must not outlive its launcher, not even one that was killed with -9."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def lifeline() -> Callable[[], None]:
    """To be called in the child: the kernel then kills it with its parent.

    Linux only. Elsewhere a runtime still gets the SIGHUP that the kernel sends when the leader of a
    terminal's session ends, and processes.json says where one that ignores it can be found.
    """
    if not sys.platform.startswith("linux"):
        return _nothing
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return _nothing
    return lambda: prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def _nothing() -> None:
    pass
