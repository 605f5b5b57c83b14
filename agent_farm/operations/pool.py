"""`pool_fill`, `pool_drain`: worktrees that lie ready for the next spawns."""

from __future__ import annotations

from agent_farm.errors import UsageError
from agent_farm.farm.ready_worktrees import drain, fill
from agent_farm.operations.operation import Answer, Context, Nothing, Operation, single


class Ready(Answer):
    """How many are ready now."""

    ready: int


def _fill(context: Context, request: Nothing) -> Ready:
    if not context.farm.settings.number("pool.size"):
        raise UsageError("The pool is off", hint="af config set pool.size 2")
    return Ready(fill(context.farm))


POOL_FILL = Operation(
    "pool_fill",
    "Prepare as many worktrees as [pool] size says, at the main checkout's commit",
    Nothing,
    Ready,
    single(_fill),
    effect="changes",
    repeats=True,
)


class Drained(Answer):
    """How many were removed."""

    removed: int


def _drain(context: Context, request: Nothing) -> Drained:
    return Drained(drain(context.farm))


POOL_DRAIN = Operation(
    "pool_drain",
    "Remove all ready worktrees; nobody has worked in them",
    Nothing,
    Drained,
    single(_drain),
    effect="changes",
    repeats=True,
)
