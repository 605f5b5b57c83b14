"""`expire`: delete for good what was removed long ago."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from agent_farm.clock_jumps import require_steady_clock
from agent_farm.farm import trash
from agent_farm.farm.waiting import expire_forgotten
from agent_farm.fleet.left_behind import expire_left
from agent_farm.operations.declare import in_parts
from agent_farm.operations.operation import Answer, Context, Failure, Request, gathered


class Expire(Request):
    age: Annotated[str, Meta(description="Delete for good what was removed more than AGE ago, as in 30d")]


class Expired(Answer):
    """A removed builder, the prompt of a dequeued one, or what one left behind on another machine."""

    id: str
    epoch: int


class Left(Answer):
    """What cannot be deleted, because it contains another user's files."""

    path: str


class AllExpired(Answer):
    expired: tuple[Expired, ...]
    left: tuple[str, ...] = ()
    refused: tuple[Failure, ...] = ()

    @property
    def exit_code(self) -> int:
        return 1 if self.left or self.refused else 0


Part = Expired | Left | Failure


@in_parts(
    "Delete for good what was removed long ago",
    gathered(AllExpired, expired=Expired, left=(Left, "path"), refused=Failure),
    effect="destroys",
)
def expire(context: Context, request: Expire) -> Iterator[Part]:
    age = trash.parse_age(request.age)
    if age:
        require_steady_clock(context.farm.paths, asked=True)
    yield from (Expired(id=id, epoch=epoch) for id, epoch in expire_forgotten(context.farm, age))
    limit = time.time() - age
    yield from (Expired(id=id, epoch=epoch) for id, epoch in expire_left(context.farm, limit))
    found = trash.expire(context.farm, age)
    yield from (Expired(id=kept.record.id, epoch=kept.epoch) for kept in found.gone)
    yield from (Failure.of("", error) for error in found.busy)
    yield from (Left(path=str(path)) for path in found.left)
