"""Slots for builds, shared by all of one user's farms on this machine.

A slot is a lock file: a held lock means a process that is alive, so a build that is killed leaves nothing to
clear up. If no slot is free, one process holds the door's lock and polls; all others wait for that lock in
the kernel, at no cost.
"""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import current_thread, main_thread
from typing import NamedTuple

from agent_farm.descendants import is_there
from agent_farm.governor import cgroup, machine
from agent_farm.governor.jobserver import kept_jobs

_POLL_SECONDS = 0.1
_MEGABYTE = 1 << 20
_WIDTH = 12  # of each of the two numbers in a slot's file: megabytes, process


class Limits(NamedTuple):
    """`memory` is what one build is expected to need at most, in megabytes; 0: memory is ignored.

    `jobs` is how many jobs all makes share; 0: none are shared.
    """

    directory: Path
    slots: int
    memory: int = 0
    jobs: int = 0


class Held(NamedTuple):
    """A slot that is held: its file, the jobs that all builds share, and the cgroup for what runs in it."""

    path: Path
    jobs: int
    group: Path | None


class NoSlots(Exception):
    """The slots cannot be used, because of a sandbox for example: there is nothing to wait for."""


@contextmanager
def slot(limits: Limits, run: str, *, waits: Callable[[], None] = lambda: None) -> Iterator[Held]:
    """Hold a slot. `waits` is called once if it has to wait.

    `run` identifies the start of a builder, for `waiting_runs`.
    """
    with ExitStack() as stack:
        with _never_stopped(), _opened(limits.directory / "door") as door:
            if not (_try(door) and (found := _free_slot(limits)) is not None):
                fcntl.flock(door, fcntl.LOCK_UN)  # what is told may have to wait for its reader
                waits()
                with _shown_as_waiting(limits.directory, run):
                    fcntl.flock(door, fcntl.LOCK_EX)
                    while (found := _free_slot(limits)) is None:
                        time.sleep(_POLL_SECONDS)
            path, descriptor, others = found
            stack.callback(os.close, descriptor)
            stack.callback(_note, path, " " * 2 * _WIDTH, 0)
            _note(path, f"{limits.memory:{_WIDTH}}{0:{_WIDTH}}", 0)
            stack.enter_context(kept_jobs(limits.directory, limits.jobs, refill=not others))
            fcntl.flock(door, fcntl.LOCK_UN)
        name = f"{os.getpid()}-{path.name}"
        group = stack.enter_context(cgroup.group_of_one(name, machine.memory_for_builds()))
        yield Held(path, limits.jobs, group)


@contextmanager
def _never_stopped() -> Iterator[None]:
    """Who is stopped (Ctrl-Z) at the door would keep all others out."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, before)


def note_process(path: Path, pid: int) -> None:
    """Note in a held slot which process is the build, so that others can see what it has taken so far."""
    _note(path, f"{pid:{_WIDTH}}", _WIDTH)


def waiting_runs(directory: Path) -> frozenset[str]:
    """The starts (`run`) of builders with a build that waits for a slot."""
    found = set()
    try:
        names = os.listdir(directory / "waiting")
    except OSError:
        return frozenset()
    for name in names:
        run, _, pid = name.rpartition(".")
        if pid.isdecimal() and is_there(int(pid)):
            found.add(run)
        else:
            with suppress(OSError):
                (directory / "waiting" / name).unlink()
    return frozenset(found)


def make_places(limits: Limits) -> None:
    """Create all files in advance: a runtime's sandbox may allow its builds to read here but not to write.

    NoSlots if something else is in the place of one.
    """
    (limits.directory / "waiting").mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in (limits.directory / "door", *_own_slots(limits)):
        os.close(_open(path, os.O_CREAT))


def _free_slot(limits: Limits) -> tuple[Path, int, int] | None:
    """A slot, now held, and how many others are. The caller holds the door, so nobody else counts."""
    own = _own_slots(limits)
    mine, others = None, list[machine.Reserved]()
    for path in dict.fromkeys((*own, *limits.directory.glob("slot-*"))):
        try:
            descriptor = _open(path)
        except NoSlots:
            if path in own:
                if mine is not None:
                    os.close(mine[1])
                raise
            continue  # not a lock file, so no build holds it
        if not _try(descriptor):
            others.append(_reserved(descriptor))
        elif mine is None and path in own:
            mine = path, descriptor
            continue
        os.close(descriptor)
    if mine is None:
        return None
    # slots that builds of other repositories hold count as well
    if others and (len(others) >= limits.slots or not machine.has_room(limits.memory * _MEGABYTE, others)):
        os.close(mine[1])
        return None
    return *mine, len(others)


def _reserved(descriptor: int) -> machine.Reserved:
    """What the holder has noted; nothing if its sandbox does not let it."""
    with suppress(OSError):
        numbers = os.pread(descriptor, 2 * _WIDTH, 0).split()
        if len(numbers) == 2 and all(number.isdigit() for number in numbers):
            return machine.Reserved(int(numbers[0]) * _MEGABYTE, int(numbers[1]))
    return machine.Reserved(0, 0)


def _note(path: Path, text: str, at: int) -> None:
    """Others read without a lock: all numbers are equally long, so that none is ever seen in part."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.pwrite(descriptor, text.encode(), at)
        finally:
            os.close(descriptor)


@contextmanager
def _shown_as_waiting(directory: Path, run: str) -> Iterator[None]:
    name = directory / "waiting" / f"{run}.{os.getpid()}"
    with suppress(OSError):  # a build that cannot be shown as waiting waits all the same
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    try:
        yield
    finally:
        with suppress(OSError):
            name.unlink()


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = _open(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _own_slots(limits: Limits) -> list[Path]:
    return [limits.directory / f"slot-{number}" for number in range(limits.slots)]


def _open(path: Path, flags: int = 0) -> int:
    """Open for reading, which is enough for a lock. Never blocks, even if it is no regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
    except OSError as error:
        raise NoSlots(f"{path}: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NoSlots(f"{path}: not a plain file")
    return descriptor


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
