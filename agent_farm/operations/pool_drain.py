"""`pool_drain`: no worktree lies ready any more."""

from __future__ import annotations

from agent_farm.farm.pool import drain
from agent_farm.operations.operation import Answer, Context, Operation, Request, only, single


class PoolDrain(Request):
    pass


class Drained(Answer):
    """How many were removed."""

    removed: int


def _drain(context: Context, request: PoolDrain) -> Drained:
    return Drained(drain(context.farm))


OPERATION = Operation(
    "pool_drain",
    "Remove all worktrees that lie ready; nobody has worked in them",
    PoolDrain,
    Drained,
    single(_drain),
    only,
    effect="changes",
    repeats=True,
)
