"""`list_builders`: who else works in this farm, in a few words each."""

from __future__ import annotations

from typing import Annotated, cast

from msgspec import Meta, Struct

from agent_farm.builders.config import BuilderType
from agent_farm.builders.status import State
from agent_farm.farm.listing import Builder, list_builders
from agent_farm.operations.operation import EVERYBODY, Answer, Context, Operation, Request, only, single


class ListBuilders(Request):
    pass


class Colleague(Struct, frozen=True):
    id: str
    type: BuilderType
    task: Annotated[str, Meta(description="One line that tells what it is for")]
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


def _list(context: Context, request: ListBuilders) -> Colleagues:
    return Colleagues(tuple(map(Colleague.of, list_builders(context.farm, with_git=False))))


OPERATION = Operation(
    "list_builders",
    "List the builders of this farm: what each works on, and how it is",
    ListBuilders,
    Colleagues,
    single(_list),
    only,
    effect="reads",
    who=EVERYBODY,
    tolerant=True,
    pool="look",
)
