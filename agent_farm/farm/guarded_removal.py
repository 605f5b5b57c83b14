"""Removes builders, but no line of work that exists nowhere else."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import STATES
from agent_farm.errors import AgentFarmError, WorkWouldBeLost, as_farm_error
from agent_farm.farm.ending import end_processes
from agent_farm.farm.evidence import gather, require_removable
from agent_farm.farm.farm import Farm
from agent_farm.farm.locks import each_held
from agent_farm.farm.own_events import note
from agent_farm.farm.removal import Leaving, finish, remove, settle_removal
from agent_farm.farm.trash import Trashed, begun_removals
from agent_farm.git.changes import TreeState

_BY = "by af prune --stop"
_TRIES = 3  # a worktree to which somebody keeps writing is not removed


class Waived(Struct, frozen=True):
    """What may be removed although it exists nowhere else, and whether a running builder is stopped."""

    discard_changes: bool = False
    discard_commits: bool = False
    stop: bool = False


def prune(farm: Farm, record: BuilderRecord, waived: Waived) -> Trashed:
    """Remove one builder; WorkWouldBeLost with the evidence if something would be lost."""
    ((_, found),) = prune_several(farm, [record.id], waived)
    if isinstance(found, AgentFarmError):
        raise found
    return found


def prune_several(
    farm: Farm, ids: Sequence[str], waived: Waived, seen: Mapping[str, TreeState] | None = None
) -> Iterator[tuple[str, Trashed | AgentFarmError]]:
    """Each builder that was removed, or WorkWouldBeLost with the evidence.

    With `stop`, a running one is stopped first, unless it is refused anyway. `seen` are worktrees as read
    just before; they are checked again.
    """
    return each_held(farm, ids, lambda farm, records: _remove(farm, records, waived, seen))


def _remove(
    farm: Farm, records: Mapping[str, BuilderRecord], waived: Waived, seen: Mapping[str, TreeState] | None
) -> dict[str, Trashed | AgentFarmError]:
    done: dict[str, Trashed | AgentFarmError] = {**_settle(farm, records)}
    left = [record for id, record in records.items() if id not in done]
    for again in range(_TRIES):
        allowed, refused = check(farm, left, waived, seen)
        done |= refused
        if not again:
            done |= _end(farm, allowed)
        leaving = {id: one for id, one in allowed.items() if id not in done}
        found = remove(farm, leaving)
        done |= {id: one for id, one in found.items() if isinstance(one, AgentFarmError)}
        removed = [one for one in found.values() if isinstance(one, Trashed)]
        problems = finish(farm, removed) if removed else {}
        done |= {kept.record.id: problems.get(kept.record.id, kept) for kept in removed}
        # Its runtime, its shell or an editor has written something in the meantime.
        left, seen = [leaving[id].record for id, one in found.items() if one is None], None
        if not left:
            return done
    return done | {
        record.id: WorkWouldBeLost(
            f"{record.id} was not removed", why="Something keeps writing in its worktree."
        )
        for record in left
    }


def check(
    farm: Farm,
    records: Collection[BuilderRecord],
    waived: Waived,
    seen: Mapping[str, TreeState] | None = None,
) -> tuple[dict[str, Leaving], dict[str, AgentFarmError]]:
    """Those that could be removed now; for the others, WorkWouldBeLost with the evidence."""
    allowed, refused = dict[str, Leaving](), dict[str, AgentFarmError]()
    found = gather(farm, records, stopping=STATES if waived.stop else (), seen=seen)
    for record in records:
        evidence = found[record.id]
        try:
            if isinstance(evidence, AgentFarmError):
                raise evidence
            require_removable(
                record,
                evidence,
                discard_changes=waived.discard_changes,
                discard_commits=waived.discard_commits,
            )
            allowed[record.id] = Leaving(record, evidence)
        except AgentFarmError as error:
            refused[record.id] = error
    return allowed, refused


def _settle(farm: Farm, records: Collection[str]) -> dict[str, AgentFarmError]:
    """Settle interrupted removals of these builders; returns what could not be settled."""
    problems = dict[str, AgentFarmError]()
    for begun in begun_removals(farm):
        id = begun.record.id
        if id in records:
            try:
                settle_removal(farm, begun)
            except (AgentFarmError, OSError) as error:
                problems[id] = as_farm_error(error, f"{id} was not removed")
    return problems


def _end(farm: Farm, allowed: dict[str, Leaving]) -> dict[str, AgentFarmError]:
    """Recorded as stopped before they end, so that a crash leaves stopped builders, not lost ones."""
    runs = [id for id, one in allowed.items() if not one.evidence.status.is_finished]
    if runs:
        stopped = {id: allowed[id].record.with_state("stopped", _BY) for id in runs}
        with farm.registry.edit() as records:
            records.update(stopped)
        allowed |= {id: replace(allowed[id], record=record) for id, record in stopped.items()}
    problems = end_processes(farm, [one.record for one in allowed.values()])
    for id in runs:
        if id not in problems:
            note(farm, allowed[id].record, "stopped", _BY)
    return problems
