"""`pool_fill`: as many worktrees as the settings say lie ready for the next spawns."""

from __future__ import annotations

from agent_farm.errors import UsageError
from agent_farm.farm.pool import fill
from agent_farm.operations.operation import Answer, Context, Operation, Request, only, single


class PoolFill(Request):
    pass


class Ready(Answer):
    """How many lie ready now."""

    ready: int


def _fill(context: Context, request: PoolFill) -> Ready:
    if not context.farm.settings.number("pool.size"):
        raise UsageError("The pool is off", hint="af config set pool.size 2")
    return Ready(fill(context.farm))


OPERATION = Operation(
    "pool_fill",
    "Make as many worktrees ready as [pool] size says, at the commit of the main checkout",
    PoolFill,
    Ready,
    single(_fill),
    only,
    effect="changes",
    repeats=True,
)
