"""`prune`: removes builders, and never a line of work that exists nowhere else."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Annotated, Self

from msgspec import Meta

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError
from agent_farm.farm.evidence import gather
from agent_farm.farm.farm import Farm
from agent_farm.farm.guarded_removal import Waived, prune, require_prunable
from agent_farm.farm.listing import read_statuses
from agent_farm.farm.trash import Kept
from agent_farm.operations.builders import choose_each, each, exit_code_of, failures_of
from agent_farm.operations.operation import Answer, Context, Failure, Operation, Request
from agent_farm.operations.stop import Forgotten, forget


class Prune(Request):
    ids: Annotated[
        tuple[str, ...],
        Meta(
            description="Whole ids of builders; without ids all that are finished and have landed; with "
            "@landed the idle ones, too, which are stopped first"
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
    """`kept` are files that lie in the trash, `left_out` what a tool makes again."""

    id: str
    epoch: int
    branch: str | None
    salvage: str | None
    kept: tuple[str, ...]
    left_out: tuple[str, ...]
    place: str

    @classmethod
    def of(cls, kept: Kept, **more: str) -> Self:
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
    """A finished builder that was not named, and stays; `reason` says what it holds."""

    id: str
    reason: str


class Running(Answer):
    """One that has landed and would have to be stopped first."""

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


Part = Removal | WouldRemove | Forgotten | Stays | Running | Failure


def _run(context: Context, request: Prune) -> Iterator[Part]:
    farm = context.farm
    unknown: tuple[Failure, ...] = ()
    all_landed = request.ids == ("@landed",)
    stop = request.stop or all_landed
    if request.ids and not all_landed:
        chosen, unknown = choose_each(context, request.ids, _exactly)
    else:
        chosen = yield from _find(farm, stop=stop, with_nothing=request.stop)
    yield from unknown
    waived = Waived(request.discard_changes, request.discard_commits, stop)
    # One question to tmux for all of them: one that hangs is waited for once.
    unasked = {id for id, status in read_statuses(farm, chosen).items() if status.state == "unknown"}

    def remove(record: BuilderRecord) -> Removal | WouldRemove | Forgotten:
        if record.state == "queued" and not request.dry_run and (gone := forget(farm, record)):
            return gone
        if record.state == "queued" and request.dry_run:
            return WouldRemove(id=record.id)
        if request.dry_run or record.id in unasked:
            require_prunable(farm, record, waived)
            return WouldRemove(id=record.id)
        return Removal.of(prune(farm, record, waived))

    yield from each(chosen, remove, alone=bool(request.ids) and not unknown, otherwise="was not removed")


def _find(
    farm: Farm, *, stop: bool, with_nothing: bool
) -> Generator[Stays | Running, None, list[BuilderRecord]]:
    """Those that have ended and landed; with `stop` also those that have landed and wait for a next task.

    `with_nothing`: an idle one that has committed nothing counts as landed.
    """
    records = list(farm.records().values())
    statuses = read_statuses(farm, records)
    finished, idle = list[BuilderRecord](), list[BuilderRecord]()
    for record in records:
        status = statuses[record.id]
        if not (status.is_finished or status.state in ("idle", "unknown")):
            continue
        try:
            evidence = gather(farm, record, will_stop=status.state == "idle", status=status)
        except AgentFarmError as error:
            yield Stays(id=record.id, reason=error.sentence)
            continue
        if evidence.has_landed and not status.cut_short:
            if status.is_finished:
                finished.append(record)
            elif with_nothing or evidence.head != record.base_commit:
                idle.append(record)
        elif status.state != "idle":
            yield Stays(id=record.id, reason=evidence.summary())
    if stop:
        return [*finished, *idle]
    yield from (Running(id=record.id) for record in idle)
    return finished


def _exactly(context: Context, id: str) -> BuilderRecord:
    return context.farm.require_exact(id)


def _collect(parts: Sequence[Part]) -> Pruned:
    return Pruned(
        removed=tuple(part for part in parts if isinstance(part, Removal)),
        would_remove=tuple(part.id for part in parts if isinstance(part, WouldRemove)),
        refused=failures_of(parts),
        stay=tuple(part for part in parts if isinstance(part, Stays)),
        running=tuple(part.id for part in parts if isinstance(part, Running)),
        forgotten=tuple(part for part in parts if isinstance(part, Forgotten)),
    )


PRUNE = Operation(
    "prune",
    "Remove builders; without ids, all that are finished and have landed",
    Prune,
    Pruned,
    _run,
    _collect,
    effect="destroys",
)
