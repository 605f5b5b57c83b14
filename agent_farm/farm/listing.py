"""All builders and their states: records, joined with what can be asked."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agent_farm.builders.events import Exit, Report, Usage, read_report
from agent_farm.builders.proof import Proof
from agent_farm.builders.pull_request import PullRequest
from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import BUSY, QUEUED_FOR_BUILD, PaneView, Status, judge
from agent_farm.documents import load_if_whole
from agent_farm.farm.farm import Farm

if TYPE_CHECKING:
    from agent_farm.farm.git_state import GitState
    from agent_farm.farm.panes import Found


class Builder(Struct, frozen=True):
    """What `af status` shows of one builder; `git` is None if it was not asked for, or is not known.

    `renamed_from` is its branch until now, `host` its machine if not this one; `seen_at` is when that machine
    last reported it, if it has not answered since.
    """

    record: BuilderRecord
    status: Status
    git: GitState | None = None
    usage: Usage | None = None
    renamed_from: str | None = None
    proof: Proof | None = None
    pull_request: PullRequest | None = None
    host: str | None = None
    seen_at: float | None = None


def list_builders(
    farm: Farm, ids: Iterable[str] | None = None, *, with_git: bool = True, fresh: bool = False
) -> list[Builder]:
    """All builders, or those named, oldest first. One tmux call; git's time is limited unless `fresh`."""
    records = farm.records()
    chosen = [records[id] for id in ids] if ids is not None else list(records.values())
    if not chosen:
        return []
    there = {record.id: farm.run(record.id).names() for record in chosen}
    statuses = read_statuses(farm, chosen, there=there)
    made = [record for record in chosen if record.state != "queued"]
    states: Mapping[str, GitState] = {}
    renamed: Mapping[str, BuilderRecord] = {}
    proofs: Mapping[str, Proof] = {}
    if with_git:  # takes 20 ms to load, which commands that only need the state do without
        from agent_farm.farm.git_state import git_states
        from agent_farm.farm.renames import follow_renames

        still = [id for id, status in statuses.items() if status.state not in BUSY]
        states = git_states(farm, made, still=still, fresh=fresh) if made else {}
        renamed = follow_renames(farm, chosen, states)
        proven = [record for record in chosen if "proof.json" in there[record.id]]
        if proven:
            from agent_farm.farm.proofs import read_proofs

            proofs = read_proofs(farm, proven, states)
    return [
        Builder(
            renamed.get(record.id, record),
            statuses[record.id],
            states.get(record.id),
            load_if_whole(farm.run(record.id).usage, Usage) if "usage.json" in there[record.id] else None,
            record.branch if record.id in renamed else None,
            proofs.get(record.id),
            load_if_whole(farm.run(record.id).pull_request, PullRequest)
            if "pull-request.json" in there[record.id]
            else None,
        )
        for record in chosen
    ]


def read_statuses(
    farm: Farm,
    records: Collection[BuilderRecord],
    found: Mapping[str, Found] | None = None,
    *,
    there: Mapping[str, Collection[str]] | None = None,
) -> dict[str, Status]:
    """`there` says which files each run has, if the caller knows."""
    waiting = [record for record in records if record.state == "queued"]
    records = [record for record in records if record.state != "queued"]
    if found is None:
        from agent_farm.farm.panes import find_panes  # takes 1 ms, which a spawn does without

        found = find_panes(records)
    now = time.time()
    ended = {record.id: there is None or "exit.json" in there[record.id] for record in records}
    statuses = {
        record.id: _status(farm, record, found[record.id].view, now, ended=ended[record.id])
        for record in records
    }
    statuses |= _corrected(farm, records, found, statuses, now)
    statuses |= _queued_for_build(farm, records, statuses)
    return statuses | _waiting(farm, waiting) if waiting else statuses


def _queued_for_build(
    farm: Farm, records: Collection[BuilderRecord], statuses: Mapping[str, Status]
) -> dict[str, Status]:
    if not farm.settings.number("limits.builds"):
        return {}
    from agent_farm.farm.builds import queued_for_build  # few farms have such a setting

    queued = queued_for_build(farm)
    builds = (*BUSY, "idle")  # of one that is idle, the check
    found = [one.id for one in records if one.run in queued and statuses[one.id].state in builds]
    return {id: replace(statuses[id], reason=QUEUED_FOR_BUILD) for id in found}


def _waiting(farm: Farm, records: Collection[BuilderRecord]) -> dict[str, Status]:
    """The status of waiting builders, with each one's place in the queue."""
    known = farm.registry.read()
    queue = [record.id for record in known.values() if record.state == "queued"]
    found = {}
    for record in records:
        place = f"place {queue.index(record.id) + 1} of {len(queue)}" if record.id in queue else None
        awaited = (id if id in known.ids else f"{id}, which is not there any more," for id in record.awaits)
        waits = f"for {' and '.join(awaited)} to land" if record.after else None
        reason = "; ".join(filter(None, (place, waits, record.reason))) or None
        found[record.id] = replace(judge(record, PaneView(known=True), Report(), None, now=0), reason=reason)
    return found


def read_status(farm: Farm, record: BuilderRecord) -> Status:
    return read_statuses(farm, [record])[record.id]


def read_started_status(farm: Farm, record: BuilderRecord) -> Status:
    """For a builder whose session was just opened: tmux need not be asked whether it exists."""
    return _status(farm, record, PaneView(known=True, exists=True), time.time())


def _status(farm: Farm, record: BuilderRecord, view: PaneView, now: float, *, ended: bool = True) -> Status:
    run = farm.run(record.id)
    report = read_report(run.events, record.run)
    exit = load_if_whole(run.exit, Exit) if ended else None
    status = judge(record, view, report, exit, now=now)
    if status.at is None:
        status = replace(status, at=report.last)
    return _unless_elsewhere(farm, record, status) if status.state == "lost" and not view.exists else status


def _corrected(
    farm: Farm,
    records: Collection[BuilderRecord],
    found: Mapping[str, Found],
    statuses: Mapping[str, Status],
    now: float,
) -> dict[str, Status]:
    stale = [record for record in records if found[record.id].may_be_stale(statuses[record.id], now)]
    if not stale:
        return {}
    from agent_farm.farm.stale_status import correct_stale  # loads all runtimes

    return correct_stale(farm, stale, statuses, found, now)


def _unless_elsewhere(farm: Farm, record: BuilderRecord, status: Status) -> Status:
    """A running builder whose tmux server cannot be reached any more (because its socket was removed)."""
    from agent_farm.processes import belongs_to_run, load_runtime_pid

    pid = load_runtime_pid(farm.run(record.id).processes, record.run)
    if pid is None or not belongs_to_run(pid, record.run):
        return status
    reason = f"its runtime (pid {pid}) runs, but its tmux session cannot be reached"
    return replace(status, state="unknown", reason=reason)
