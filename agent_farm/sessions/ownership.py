"""Which process owns a session: a lock file that the kernel lets go of when the process dies."""

from __future__ import annotations

import fcntl
import os
from contextlib import ExitStack, suppress
from pathlib import Path

from agent_farm.disk import file_lock


def owner_lock(locks: Path, owner: str) -> Path:
    return locks / f"sessions-{owner}.lock"


def is_held(path: Path) -> bool:
    """Whether a live process holds the lock. Asked with a shared lock, so that two who ask do not meet."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)


def is_alive(locks: Path, owner: str) -> bool:
    return is_held(owner_lock(locks, owner))


def forget_owner(locks: Path, owner: str) -> None:
    with suppress(FileNotFoundError):
        owner_lock(locks, owner).unlink()


class Ownership:
    """Held from construction to `release`; the id is random and never used again."""

    def __init__(self, locks: Path) -> None:
        self.id = os.urandom(8).hex()
        self._locks = locks
        self._held = ExitStack()
        self._held.enter_context(file_lock(owner_lock(locks, self.id), wait=0))

    def release(self) -> None:
        forget_owner(self._locks, self.id)
        self._held.close()
