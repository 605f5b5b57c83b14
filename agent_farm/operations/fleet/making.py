"""Marks builders that are being made or restored on another machine, so that no look takes one that is not
there yet for lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from agent_farm.disk import file_lock, is_locked
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm


@contextmanager
def being_made(farm: Farm, id: str) -> Iterator[None]:
    """Marks it while this process lives; LockTaken if another process is making it."""
    lock = farm.paths.builder_lock(id)
    with file_lock(lock, wait=0):
        try:
            yield
        finally:
            with suppress(OSError):
                lock.unlink()


def is_being_made(farm: Farm, id: str) -> bool:
    with suppress(AgentFarmError):
        return farm.paths.builder_lock(id).exists() and is_locked(farm.paths.builder_lock(id))
    return True
