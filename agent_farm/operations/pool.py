"""`pool_status`, `pool_fill`, `pool_drain`: worktrees made in advance for the next spawns."""

from __future__ import annotations

from agent_farm.errors import UsageError
from agent_farm.farm.checkout_cost import pool_directory, pool_of
from agent_farm.farm.ready_worktrees import count_ready, drain, fill, planned
from agent_farm.operations.declare import acts, reads
from agent_farm.operations.operation import Answer, Context, Nothing


class Ready(Answer):
    """How many are ready now."""

    ready: int


class PoolStatus(Answer):
    """How many are ready, how many should be, and why."""

    ready: int
    wanted: int
    reason: str


@reads("Show how many worktrees are ready, and why")
def pool_status(context: Context, request: Nothing) -> PoolStatus:
    pool = planned(context.farm)
    return PoolStatus(count_ready(context.farm), pool.size, pool.reason)


@acts(
    "Fill the pool with worktrees at the main checkout's commit, and remove excess ones",
    repeats=True,
)
def pool_fill(context: Context, request: Nothing) -> Ready:
    farm = context.farm
    pool = pool_of(farm)
    if not (pool.size or pool_directory(farm).is_dir()):
        raise UsageError("The pool is off", why=f"{pool.reason}.", hint="af config set pool.size 2")
    return Ready(fill(farm))


class Drained(Answer):
    """How many were removed."""

    removed: int


@acts("Remove all ready worktrees; nobody has worked in them", repeats=True)
def pool_drain(context: Context, request: Nothing) -> Drained:
    return Drained(drain(context.farm))
