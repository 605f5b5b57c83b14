"""`status`: builders, and how they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta

from agent_farm.farm.listing import Builder, list_builders
from agent_farm.operations.builders import choose_each, exit_code_of, failures_of
from agent_farm.operations.operation import Answer, Context, Failure, Operation, Request
from agent_farm.operations.shown import BuilderShown, show_all


class StatusRequest(Request):
    ids: Annotated[
        tuple[str, ...], Meta(description="Ids of builders, or prefixes that only one has each; default: all")
    ] = ()
    fresh: Annotated[bool, Meta(description="Wait for every worktree's git state, however long it takes")] = (
        False
    )


class Builders(Answer):
    builders: tuple[BuilderShown, ...]
    failed: tuple[Failure, ...] = ()

    @property
    def exit_code(self) -> int:
        return exit_code_of(self.failed)


Found = tuple[Builder, ...]


def _look(context: Context, request: StatusRequest) -> Iterator[Found | Failure]:
    ids = None
    if request.ids:
        chosen, unknown = choose_each(context, request.ids)
        ids = [record.id for record in chosen]
        yield from unknown
    yield tuple(list_builders(context.farm, ids, fresh=request.fresh))


def _collect(parts: Sequence[Found | Failure]) -> Builders:
    found = (builder for part in parts if isinstance(part, tuple) for builder in part)
    return Builders(show_all(found), failures_of(parts))


OPERATION = Operation(
    "status",
    "List builders and their state: first those that need you, then the others by type",
    StatusRequest,
    Builders,
    _look,
    _collect,
    effect="reads",
    tolerant=True,
    pool="look",
)
