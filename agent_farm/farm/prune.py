"""`af prune`: remove builders, and never a line of work that exists nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError, WorkWouldBeLost
from agent_farm.farm.evidence import Evidence, gather, require_removable
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_statuses
from agent_farm.farm.locks import hold
from agent_farm.farm.own_events import note
from agent_farm.farm.removal import finish, remove, settle_removal
from agent_farm.farm.stop import end_processes
from agent_farm.farm.trash import Kept, begun_removals

_TRIES = 3  # a worktree in which somebody goes on writing is not removed


@dataclass(frozen=True, slots=True)
class Waived:
    """What may be removed although it exists nowhere else, and whether a running builder is stopped."""

    discard_changes: bool = False
    discard_commits: bool = False
    stop: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """Of one builder: `kept` when it is removed, `error` when it is not; neither after a dry run."""

    id: str
    kept: Kept | None = None
    error: AgentFarmError | None = None


def prune_each(
    farm: Farm, records: Sequence[BuilderRecord], waived: Waived, *, dry_run: bool = False
) -> Iterator[Result]:
    """One result for each, as it comes: what keeps one of them keeps none of the others."""
    # One question to tmux for all of them: one that hangs is waited for once.
    unknown = {id for id, status in read_statuses(farm, records).items() if status.state == "unknown"}
    for record in records:
        try:
            if dry_run or record.id in unknown:
                require_prunable(farm, record, waived)
                yield Result(record.id)
            else:
                yield Result(record.id, kept=prune(farm, record, waived))
        except AgentFarmError as error:
            yield Result(record.id, error=error)
        except OSError as error:
            yield Result(record.id, error=AgentFarmError(f"{record.id} was not removed", why=str(error)))


def to_json(results: Sequence[Result]) -> dict[str, Any]:
    """The same in a terminal, over MCP and over HTTP."""
    refused = [
        {
            "id": one.id,
            "code": one.error.code,
            "what": one.error.what,
            "why": one.error.why,
            "evidence": list(one.error.evidence),
            "hint": one.error.hint,
        }
        for one in results
        if one.error
    ]
    return {
        "removed": [one.kept.to_json() for one in results if one.kept],
        "would_remove": [one.id for one in results if not one.kept and not one.error],
        "refused": refused,
    }


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


@dataclass(frozen=True, slots=True)
class Candidates:
    """Which builders `af prune` takes by itself, and why not the others.

    `stay` are finished and hold something, `running` have landed and would have to be stopped.
    """

    chosen: tuple[BuilderRecord, ...]
    stay: dict[str, str]
    running: tuple[BuilderRecord, ...]


def find_candidates(farm: Farm, *, stop: bool = False) -> Candidates:
    """With `stop` those that have landed and wait for their next task are chosen, too."""
    records = list(farm.records().values())
    statuses = read_statuses(farm, records)
    chosen, running, stay = list[BuilderRecord](), list[BuilderRecord](), dict[str, str]()
    for record in records:
        status = statuses[record.id]
        if not (status.is_finished or status.state in ("idle", "unknown")):
            continue
        try:
            evidence = gather(farm, record, will_stop=status.state == "idle", status=status)
        except AgentFarmError as error:
            stay[record.id] = f"{error.what}: {error.why}" if error.why else error.what
            continue
        if evidence.has_landed and not status.cut_short:
            (chosen if status.is_finished else running).append(record)
        elif status.state != "idle":
            stay[record.id] = evidence.summary()
    if stop:
        return Candidates((*chosen, *running), stay, ())
    return Candidates(tuple(chosen), stay, tuple(running))
