"""`restore`, `removed`: bring a removed builder back with all it had, and list those that can be."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from agent_farm.builders.config import BuilderType
from agent_farm.errors import NotFound, nearest
from agent_farm.farm import restoring
from agent_farm.farm.farm import Farm
from agent_farm.farm.trash import Trashed, list_kept
from agent_farm.launch import as_command
from agent_farm.operations.declare import acts, reads
from agent_farm.operations.operation import Answer, Context, Request
from agent_farm.operations.prune import Removal
from agent_farm.operations.shown import BuilderShown, show_builder

RemovedId = Annotated[str, Meta(description="Whole id of a removed builder")]


class Restore(Request):
    id: RemovedId
    epoch: Annotated[
        int | None, Meta(description="Restore the removal made at EPOCH instead of the latest")
    ] = None


class Restored(Answer):
    builder: BuilderShown


@acts(
    "Bring a removed builder back: branch, worktree, uncommitted state and record",
    details="It comes back stopped, and af resume continues its conversation. One whose start had been cut"
    " short comes back as failed.",
    elsewhere="there",
)
def restore(context: Context, request: Restore) -> Restored:
    farm = context.farm
    record = restoring.restore(farm, _find(farm, request.id, request.epoch))
    return Restored(show_builder(farm, record.id))


def _find(farm: Farm, id: str, epoch: int | None) -> Trashed:
    """The newest removal of that builder, or the one at `epoch`."""
    found = list_kept(farm, id)
    if epoch is not None:
        found = [kept for kept in found if kept.epoch == epoch]
    if found:
        return found[0]
    if id in farm.registry.read() and epoch is None:
        raise NotFound(
            f"{id} has not been removed",
            why="There is nothing to restore.",
            hint=as_command("af", "status", id),
        )
    known = sorted({kept.record.id for kept in list_kept(farm)})
    close = nearest(id, known)
    raise NotFound(
        f"No removed builder {id}" + (f" at {epoch}" if epoch is not None else ""),
        why=f"There are: {', '.join(known)}"
        if known
        else "None has been removed, or all were deleted for good.",
        hint=f"af restore {close}" if close else "af restore --list",
    )


class Removed(Request):
    id: Annotated[RemovedId | None, Meta(description="Only removals of this builder")] = None


class RemovalListed(Removal):
    """`title` says in one line what it was for."""

    title: str
    type: BuilderType


class AllRemoved(Answer):
    removed: tuple[RemovalListed, ...]


@reads("List removed builders that can be restored, newest first", elsewhere="there")
def removed(context: Context, request: Removed) -> AllRemoved:
    return AllRemoved(
        tuple(
            RemovalListed.of(kept, title=kept.record.title, type=kept.record.type)
            for kept in list_kept(context.farm, request.id)
        )
    )
