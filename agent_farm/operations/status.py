"""`status`: builders and their states; `list_builders`: the same in brief, for other builders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, cast

from msgspec import Meta, Struct

from agent_farm.builders.config import BuilderType
from agent_farm.builders.status import State
from agent_farm.farm import listing
from agent_farm.farm.listing import Builder
from agent_farm.operations.builders import SomeOrAll, choose_each, failures_of
from agent_farm.operations.declare import in_parts, reads
from agent_farm.operations.operation import (
    EVERYBODY,
    Answer,
    Context,
    Failure,
    Nothing,
    OfSeveral,
    Request,
)
from agent_farm.operations.shown import BuilderShown, show_all


class StatusRequest(Request):
    ids: SomeOrAll = ()
    fresh: Annotated[
        bool, Meta(description="Wait for each worktree's git state and each machine, however long it takes")
    ] = False


class Builders(OfSeveral):
    builders: tuple[BuilderShown, ...]


Found = tuple[Builder, ...]


def _collect(parts: Sequence[Found | Failure]) -> Builders:
    found = (builder for part in parts if isinstance(part, tuple) for builder in part)
    return Builders(show_all(found), failed=failures_of(parts))


@in_parts(
    "List builders and their state: first those that need you, then the others by type",
    _collect,
    effect="reads",
    tolerant=True,
    pool="look",
    elsewhere="there",
)
def status(context: Context, request: StatusRequest) -> Iterator[Found | Failure]:
    ids = None
    if request.ids:
        chosen, unknown = choose_each(context, request.ids)
        ids = [record.id for record in chosen]
        yield from unknown
    yield tuple(listing.list_builders(context.farm, ids, fresh=request.fresh))


class Colleague(Struct, frozen=True):
    id: str
    type: BuilderType
    task: Annotated[str, Meta(description="What it is for, in one line")]
    branch: str
    runtime: str
    state: State
    reason: str | None

    @classmethod
    def of(cls, builder: Builder) -> Colleague:
        record, status = builder.record, builder.status
        return cls(
            id=record.id,
            type=record.type,
            task=record.title,
            branch=record.branch,
            runtime=record.runtime,
            state=cast(State, status.state),
            reason=status.reason,
        )


class Colleagues(Answer):
    builders: tuple[Colleague, ...]


@reads("List the builders of this farm: what each works on, and its state", who=EVERYBODY)
def list_builders(context: Context, request: Nothing) -> Colleagues:
    return Colleagues(tuple(map(Colleague.of, listing.list_builders(context.farm, with_git=False))))
