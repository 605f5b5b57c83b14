"""Ending every process below this one, adopted orphans included; standard library only."""

from __future__ import annotations

import os
import sys
import time

from agent_farm.lean import signal, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_POLL_SECONDS = 0.02
_GIVE_UP_SECONDS = 5.0  # a process that outlives SIGKILL this long hangs in the kernel
_FOR_OTHERS = (b"agent_farm.landing.turn_end", b"agent_farm.engine.holder", b"agent_farm.engine.ray_node")
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans(adopt: bool) -> bool:
    """Orphaned descendants become our children, whatever group or session they are in (Linux)."""
    return _prctl()(_PR_SET_CHILD_SUBREAPER, adopt)


def lifeline(number: int) -> Callable[[], object]:
    """For `preexec_fn`: the kernel then sends the child `number` when its parent ends, even by kill -9.

    Linux only. Elsewhere a runtime still gets the SIGHUP that the kernel sends when the leader of a
    terminal's session ends, and processes.json says where one that ignores it can be found.
    """
    prctl = _prctl()
    return lambda: prctl(_PR_SET_PDEATHSIG, number)


def _prctl() -> Callable[[int, int], bool]:
    """prctl(2), loaded before a fork; where there is none, a function that returns False."""
    if sys.platform.startswith("linux"):
        with suppress(ImportError, OSError, AttributeError):
            import ctypes

            call = ctypes.CDLL(None).prctl
            return lambda option, value: bool(call(option, int(value), 0, 0, 0) == 0)
    return lambda option, value: False


def end_children(grace: float, groups: Iterable[int] = (), *, spare: Iterable[int] = ()) -> None:
    """End all children: TERM, KILL after `grace` seconds, then the same for orphans that this hands to us.

    `groups` are process groups to end along with the children, `spare` are children to leave alone. Processes
    that `af` keeps running independently are left alone too, see `stands_alone`.
    """
    deadline = time.monotonic() + grace
    terminated: set[int] = set()
    beyond = set(spare)
    left = list(groups)
    was_empty = False
    for group in left:
        _tell_group(group, signal.SIGTERM)
    while time.monotonic() <= deadline + _GIVE_UP_SECONDS:
        children = [pid for pid in live_children() if pid not in beyond]
        beyond |= {pid for pid in children if pid not in terminated and stands_alone(pid)}
        children = [pid for pid in children if pid not in beyond]
        left = [group for group in left if _group_lives(group)]
        if not (children or left):
            if was_empty:
                return
            was_empty = (
                True  # one look proves nothing: an orphan may come from a process that was read before it
            )
            continue
        was_empty = False
        if time.monotonic() < deadline:
            children = [pid for pid in children if pid not in terminated]
            beyond |= {pid for pid in children if not _tell(pid, signal.SIGTERM)}
        else:
            for group in left:
                _tell_group(group, signal.SIGKILL)
            beyond |= {pid for pid in children if not _tell(pid, signal.SIGKILL)}
        terminated.update(children)
        time.sleep(_POLL_SECONDS)


def live_children() -> list[int]:
    """Children of this process that have not ended; ended ones are collected. Empty without /proc."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return []
    if not sys.platform.startswith("linux"):
        return []
    me, found = os.getpid(), []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError, IndexError), open(f"/proc/{entry}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
                if int(fields[1]) == me:  # a zombie here has threads that still end, and have its children
                    found.append(int(entry))
    return found


def is_there(pid: int) -> bool:
    """Whether the process exists, whoever owns it; a zombie counts."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def stands_alone(pid: int) -> bool:
    """Whether this process is meant to outlive us: a tmux server, a farm's server, the checks of a turn
    that has ended, a node of a cluster, or the holder of a connection to one."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            program, *words = file.read().split(b"\0")
    except OSError:
        return False
    name = os.path.basename(program)
    if name == b"tmux":
        return any(word.endswith(b"/agent_farm/pane/launcher.py") for word in words)
    return name.startswith(b"python") and any(
        word.endswith(b"/agent_farm/server/supervisor.py")
        or b"from agent_farm.server.serving" in word
        or word in _FOR_OTHERS
        for word in words
    )


def _tell(pid: int, number: int) -> bool:
    """False for a process that is not ours to end: it now belongs to another user."""
    try:
        os.kill(pid, number)
        os.kill(pid, signal.SIGCONT)  # a stopped process receives no signal
    except PermissionError:
        return False
    except ProcessLookupError:
        pass
    return True


def _tell_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
        os.killpg(group, signal.SIGCONT)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):  # the latter on macOS, for a group of zombies
        return False
    return True
