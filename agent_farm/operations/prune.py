"""`prune`: remove builders, but no line of work that exists nowhere else."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from functools import partial
from typing import Annotated, Self

from msgspec import Meta

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError
from agent_farm.farm.evidence import Evidence, gather
from agent_farm.farm.farm import Farm
from agent_farm.farm.guarded_removal import Waived, check, prune_several
from agent_farm.farm.listing import read_statuses
from agent_farm.farm.trash import Trashed
from agent_farm.git.changes import TreeState
from agent_farm.landing.arrival import arrived_base
from agent_farm.landing.marks import left_claimed, mark_landed
from agent_farm.operations.builders import choose_each, each, told
from agent_farm.operations.declare import in_parts
from agent_farm.operations.operation import (
    Answer,
    Context,
    Failure,
    Request,
    exit_code_of,
    gathered,
)
from agent_farm.operations.stop import Forgotten, forget


class Prune(Request):
    ids: Annotated[
        tuple[str, ...],
        Meta(
            description="Whole ids of builders; default: all that are finished and have landed; with @landed"
            " idle ones, too, which are stopped first"
        ),
    ] = ()
    discard_changes: Annotated[
        bool, Meta(description="Remove even if files are uncommitted or untracked")
    ] = False
    discard_commits: Annotated[bool, Meta(description="Remove even if commits have not landed")] = False
    stop: Annotated[
        bool,
        Meta(description="Stop running builders first, if they can be removed; without ids, idle ones"),
    ] = False
    dry_run: Annotated[bool, Meta(description="Show what would be removed, and remove nothing")] = False


class Removal(Answer):
    """`kept` are files now in the trash; `left_out` are files that a tool makes again."""

    id: str
    epoch: int
    branch: str | None
    salvage: str | None
    kept: tuple[str, ...]
    left_out: tuple[str, ...]
    place: str

    @classmethod
    def of(cls, kept: Trashed, **more: str) -> Self:
        return cls(
            id=kept.record.id,
            epoch=kept.epoch,
            branch=kept.record.branch if kept.goes and kept.tip else None,
            salvage=kept.salvage,
            kept=kept.files,
            left_out=kept.left_out,
            place=str(kept.worktree),
            **more,
        )


class WouldRemove(Answer):
    id: str


class Stays(Answer):
    """A finished builder that was not named and stays; `reason` says what it still holds."""

    id: str
    reason: str


class Running(Answer):
    """A builder that has landed but would have to be stopped first."""

    id: str


class Pruned(Answer):
    removed: tuple[Removal, ...]
    would_remove: tuple[str, ...] = ()
    refused: tuple[Failure, ...] = ()
    stay: tuple[Stays, ...] = ()
    running: tuple[str, ...] = ()
    forgotten: tuple[Forgotten, ...] = ()

    @property
    def exit_code(self) -> int:
        return exit_code_of(self.refused)


_LOOKED_AT = ("idle", "unknown")

Part = Removal | WouldRemove | Forgotten | Stays | Running | Failure


@in_parts(
    "Remove builders; without ids, all that are finished and have landed",
    gathered(
        Pruned,
        removed=Removal,
        would_remove=(WouldRemove, "id"),
        refused=Failure,
        stay=Stays,
        running=(Running, "id"),
        forgotten=Forgotten,
    ),
    effect="destroys",
    elsewhere="there",
)
def prune(context: Context, request: Prune) -> Iterator[Part]:
    farm = context.farm
    unknown: tuple[Failure, ...] = ()
    seen: dict[str, TreeState] = {}
    all_landed = request.ids == ("@landed",)
    stop = request.stop or all_landed
    if request.ids and not all_landed:
        chosen, unknown = choose_each(context, request.ids, _exactly)
    else:
        chosen, seen = yield from _find(farm, stop=stop, with_nothing=request.stop)
    yield from unknown
    waived = Waived(request.discard_changes, request.discard_commits, stop)
    alone = len(chosen) == 1 and bool(request.ids) and not unknown
    if request.dry_run:
        yield from _foresee(farm, chosen, waived, alone=alone)
        return
    others = yield from _take_out_of_queue(farm, chosen, alone=alone)
    # work that landed without `af merge` has its task marked here
    home = [record for record in others if record.source is not None and _has_landed(farm, record)]
    removed = prune_several(farm, [record.id for record in others], waived, seen)
    yield from told(
        ((id, Removal.of(one) if isinstance(one, Trashed) else one) for id, one in removed), alone=alone
    )
    for record in home:
        for marked in mark_landed(farm, record):
            context.tell(marked)
    for note in left_claimed(farm, [record for record in chosen if record not in home]):
        context.tell(note)


def _foresee(
    farm: Farm, chosen: Sequence[BuilderRecord], waived: Waived, *, alone: bool
) -> Iterator[WouldRemove | Failure]:
    made = [record for record in chosen if record.state != "queued"]
    yield from (WouldRemove(id=record.id) for record in chosen if record.state == "queued")
    _, refused = check(farm, made, waived)
    yield from told(((one.id, refused.get(one.id) or WouldRemove(id=one.id)) for one in made), alone=alone)


def _take_out_of_queue(
    farm: Farm, chosen: Sequence[BuilderRecord], *, alone: bool
) -> Generator[Forgotten | Failure, None, list[BuilderRecord]]:
    """Returns the other builders, including those that started to run in the meantime."""
    waiting = [record for record in chosen if record.state == "queued"]
    others = [record for record in chosen if record.state != "queued"]
    for record, gone in zip(waiting, each(waiting, partial(forget, farm), alone=alone), strict=True):
        if gone is None:
            others.append(record)
        else:
            yield gone
    return others


Chosen = tuple[list[BuilderRecord], dict[str, TreeState]]


def _find(farm: Farm, *, stop: bool, with_nothing: bool) -> Generator[Stays | Running, None, Chosen]:
    """Builders that have ended and landed, and the states of their worktrees.

    With `stop`, also those that have landed and wait for a next task; with `with_nothing`, an idle builder
    that has committed nothing counts as landed.
    """
    records = list(farm.records().values())
    statuses = read_statuses(farm, records)
    asked = [one for one in records if statuses[one.id].is_finished or statuses[one.id].state in _LOOKED_AT]
    found = gather(farm, asked, stopping=("idle",))
    finished, idle = list[BuilderRecord](), list[BuilderRecord]()
    for record in asked:
        evidence, status = found[record.id], statuses[record.id]
        if isinstance(evidence, AgentFarmError):
            yield Stays(id=record.id, reason=evidence.sentence)
        elif evidence.has_landed and not status.cut_short:
            if status.is_finished:
                finished.append(record)
            elif with_nothing or evidence.head != record.base_commit:
                idle.append(record)
        elif status.state != "idle":
            yield Stays(id=record.id, reason=evidence.summary())
    seen = {id: one.state for id, one in found.items() if isinstance(one, Evidence) and one.state}
    if stop:
        return [*finished, *idle], seen
    yield from (Running(id=record.id) for record in idle)
    return finished, seen


def _has_landed(farm: Farm, record: BuilderRecord) -> bool:
    return arrived_base(farm, record.id, record.base) is not None


def _exactly(context: Context, id: str) -> BuilderRecord:
    return context.farm.require_exact(id)
