"""`prune`: removes builders, and never a line of work that exists nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta

from agent_farm.builders.record import BuilderRecord
from agent_farm.farm.prune import Waived, find_candidates, prune_each
from agent_farm.farm.trash import Kept
from agent_farm.operations.builders import choose_each, exit_code_of, failures_of
from agent_farm.operations.operation import Answer, Context, Failure, Operation, Request


class Prune(Request):
    ids: Annotated[
        tuple[str, ...],
        Meta(description="Whole ids of builders; without ids all that are finished and have landed"),
    ] = ()
    discard_changes: Annotated[
        bool, Meta(description="Remove even if files are uncommitted or untracked")
    ] = False
    discard_commits: Annotated[bool, Meta(description="Remove even if commits have not landed")] = False
    stop: Annotated[
        bool,
        Meta(description="Stop running builders first, if they can be removed; without ids idle ones"),
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
    def of(cls, kept: Kept) -> Removal:
        return cls(**kept.to_json())


class WouldRemove(Answer):
    id: str


class Stays(Answer):
    """A finished builder that nobody named: `reason` says what it holds."""

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

    @property
    def exit_code(self) -> int:
        return exit_code_of(self.refused)


Part = Removal | WouldRemove | Stays | Running | Failure


def _run(context: Context, request: Prune) -> Iterator[Part]:
    farm = context.farm
    unknown: tuple[Failure, ...] = ()
    if request.ids:
        chosen, unknown = choose_each(context, request.ids, _exactly)
    else:
        found = find_candidates(farm, stop=request.stop)
        yield from (Stays(id=id, reason=reason) for id, reason in found.stay.items())
        yield from (Running(id=record.id) for record in found.running)
        chosen = list(found.chosen)
    yield from unknown
    waived = Waived(request.discard_changes, request.discard_commits, request.stop)
    for result in prune_each(farm, chosen, waived, dry_run=request.dry_run):
        if result.error and len(chosen) == 1 and not unknown:
            raise result.error
        if result.error:
            yield Failure.of(result.id, result.error)
        else:
            yield Removal.of(result.kept) if result.kept else WouldRemove(id=result.id)


def _exactly(context: Context, id: str) -> BuilderRecord:
    return context.farm.require_exact(id)


def _collect(parts: Sequence[Part]) -> Pruned:
    return Pruned(
        removed=tuple(part for part in parts if isinstance(part, Removal)),
        would_remove=tuple(part.id for part in parts if isinstance(part, WouldRemove)),
        refused=failures_of(parts),
        stay=tuple(part for part in parts if isinstance(part, Stays)),
        running=tuple(part.id for part in parts if isinstance(part, Running)),
    )


OPERATION = Operation(
    "prune",
    "Remove builders: without ids all that are finished and have landed",
    Prune,
    Pruned,
    _run,
    _collect,
    effect="destroys",
)
