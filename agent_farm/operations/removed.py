"""`removed`: removed builders that can be restored, newest first."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from agent_farm.builders.config import BuilderType
from agent_farm.farm.trash import list_kept
from agent_farm.operations.operation import Answer, Context, Operation, Request, single
from agent_farm.operations.prune import Removal
from agent_farm.operations.restore import RemovedId


class Removed(Request):
    id: Annotated[RemovedId | None, Meta(description="Only removals of this builder")] = None


class RemovalListed(Removal):
    """`title` is one line that tells what it was for."""

    title: str
    type: BuilderType


class AllRemoved(Answer):
    removed: tuple[RemovalListed, ...]


def _list(context: Context, request: Removed) -> AllRemoved:
    return AllRemoved(
        tuple(
            RemovalListed.of(kept, title=kept.record.title, type=kept.record.type)
            for kept in list_kept(context.farm, request.id)
        )
    )


REMOVED = Operation(
    "removed",
    "List removed builders that can be restored, newest first",
    Removed,
    AllRemoved,
    single(_list),
    effect="reads",
    tolerant=True,
    pool="look",
)
