"""One command at a time works on a builder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import file_lock
from agent_farm.errors import AgentFarmError, LockTaken, NotFound
from agent_farm.farm.farm import Farm
from agent_farm.farm.renames import follow_rename

LOCK_SECONDS = 30.0


@contextmanager
def hold(farm: Farm, id: str) -> Iterator[BuilderRecord]:
    """The builder's record as it is now: another command may have changed it, or its agent its branch."""
    with lock_of(farm, id):
        record = farm.registry.read().get(id)
        if record is None:
            farm.paths.builder_lock(id).unlink(missing_ok=True)  # taking the lock made it
            raise NotFound(f"{id} was removed in the meantime", hint="af status")
        with suppress(AgentFarmError):  # a worktree that is not ours: what is done next says so
            record = follow_rename(farm, record)
        yield record


@contextmanager
def lock_of(farm: Farm, id: str) -> Iterator[int]:
    """The builder's lock, also for one that has no record (yet); children may hold it too."""
    with ExitStack() as stack:
        try:
            descriptor = stack.enter_context(
                file_lock(farm.paths.builder_lock(id), wait=LOCK_SECONDS, inherit=True)
            )
        except LockTaken as error:
            why = "Another af command is working on it."
            raise LockTaken(f"{id} is busy", why=why, hint="af status") from error
        yield descriptor
