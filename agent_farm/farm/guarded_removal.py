"""Removing one builder, and never a line of work that exists nowhere else."""

from __future__ import annotations

from dataclasses import dataclass

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import WorkWouldBeLost
from agent_farm.farm.ending import end_processes
from agent_farm.farm.evidence import Evidence, gather, require_removable
from agent_farm.farm.farm import Farm
from agent_farm.farm.locks import hold
from agent_farm.farm.own_events import note
from agent_farm.farm.removal import finish, remove, settle_removal
from agent_farm.farm.trash import Kept, begun_removals

_TRIES = 3  # a worktree in which somebody goes on writing is not removed


@dataclass(frozen=True, slots=True)
class Waived:
    """What may be removed although it exists nowhere else, and whether a running builder is stopped."""

    discard_changes: bool = False
    discard_commits: bool = False
    stop: bool = False


def prune(farm: Farm, record: BuilderRecord, waived: Waived | None = None) -> Kept:
    """Remove one builder; WorkWouldBeLost with the evidence when that would lose something.

    With `stop` one that runs is stopped first, unless it is refused anyway: then it goes on.
    """
    waived = waived or Waived()
    with hold(farm, record.id) as record:
        for begun in begun_removals(farm, record.id):
            settle_removal(farm, begun)
        evidence = require_prunable(farm, record, waived)
        runs = waived.stop and not evidence.status.is_finished
        if runs:
            record = _mark_stopped(farm, record)
        end_processes(farm, record)
        if runs:
            note(farm, record, "stopped", "by af prune --stop")
        for _ in range(_TRIES):
            kept = remove(farm, record, evidence)
            if kept is not None:
                return finish(farm, kept)
            # Its runtime, its shell or an editor has written something in the meantime.
            evidence = require_prunable(farm, record, waived)
    raise WorkWouldBeLost(f"{record.id} was not removed", why="Somebody keeps writing in its worktree.")


def require_prunable(farm: Farm, record: BuilderRecord, waived: Waived) -> Evidence:
    """WorkWouldBeLost with the evidence, when removing the builder now would lose something."""
    evidence = gather(farm, record, will_stop=waived.stop)
    require_removable(
        record,
        evidence,
        discard_changes=waived.discard_changes,
        discard_commits=waived.discard_commits,
    )
    return evidence


def _mark_stopped(farm: Farm, record: BuilderRecord) -> BuilderRecord:
    """Before it ends: what a crash leaves behind is a stopped builder, and no lost one."""
    return farm.registry.put(record.with_state("stopped", "by af prune --stop"))
