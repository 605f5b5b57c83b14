"""`stop`: end runtimes; worktree, branch and conversation stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated

from msgspec import Meta

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import ALIVE
from agent_farm.errors import AgentFarmError, DamagedFile, UsageError
from agent_farm.farm.ending import end_processes
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_statuses
from agent_farm.farm.locks import each_held
from agent_farm.farm.own_events import note
from agent_farm.farm.panes import find_panes, not_asked
from agent_farm.farm.waiting import forget_queued, in_order, start_later
from agent_farm.operations.builders import BuilderIds, choose_each, each, told
from agent_farm.operations.declare import in_parts
from agent_farm.operations.operation import Answer, Context, Failure, OfSeveral, Request, gathered


class Stop(Request):
    ids: BuilderIds = ()
    all: Annotated[bool, Meta(description="Stop every builder that runs")] = False


class Forgotten(Answer):
    """A builder that waited in the queue and was never made."""

    id: str
    prompt: Annotated[str | None, Meta(description="The file with its task")]


class Stopped(OfSeveral):
    stopped: tuple[str, ...]
    forgotten: tuple[Forgotten, ...] = ()


Part = str | Forgotten | Failure


@in_parts(
    "End runtimes; worktree, branch and conversation stay",
    gathered(Stopped, stopped=str, forgotten=Forgotten, failed=Failure),
    effect="changes",
    tolerant=True,
    repeats=True,
    details="A builder that waits in the queue is taken out of it.",
    elsewhere="there",
)
def stop(context: Context, request: Stop) -> Iterator[Part]:
    if bool(request.ids) == request.all:
        raise UsageError("Name the builders to stop, or all of them", hint="af stop --help")
    records, unknown = (_running(context), ()) if request.all else choose_each(context, request.ids)
    yield from unknown
    farm, alone = context.farm, len(records) == 1 and not unknown
    # queued ones first, otherwise they would start in place of those being stopped
    waiting = [record for record in records if record.state == "queued"]
    others = [record.id for record in records if record.state != "queued"]
    for record, found in zip(waiting, each(waiting, partial(forget, farm), alone=alone), strict=True):
        if found is None:  # it has started to run
            others.append(record.id)
        else:
            yield found
            for one in in_order(farm.registry.read()):
                if record.id in one.awaits:
                    context.tell(f"{one.id} still waits for {record.id} to land; af stop {one.id} ends that")
    yield from told(stop_running(farm, others, "by af stop"), alone=alone)
    start_later(farm)


def forget(farm: Farm, record: BuilderRecord) -> Forgotten | None:
    """Take a waiting builder out of the queue; None if it is not, or no longer, waiting."""
    if record.state != "queued":
        return None
    kept = forget_queued(farm, record)
    if kept is None:
        return None
    return Forgotten(record.id, str(kept) if kept.exists() else None)


def stop_running(
    farm: Farm, ids: Sequence[str], reason: str, *, only: str | None = None
) -> Iterator[tuple[str, str | AgentFarmError]]:
    """The id of each that ended, or why it did not; with `only`, refused unless it is in that state."""
    return each_held(farm, ids, lambda farm, records: _end(farm, records, reason, only))


def _end(
    farm: Farm, records: Mapping[str, BuilderRecord], reason: str, only: str | None
) -> dict[str, str | AgentFarmError]:
    panes = find_panes(records.values())
    statuses = read_statuses(farm, records.values(), panes)
    problems = dict[str, AgentFarmError]()
    for id, record in records.items():
        status = statuses[id]
        if only is not None and status.state != only:
            problems[id] = AgentFarmError(f"{id} is now {status.state}")
        elif status.state == "unknown" and not panes[id].known:
            problems[id] = not_asked(record, status.reason)  # it may be running
    ending = {id: record for id, record in records.items() if id not in problems}
    # how a runtime ended by itself stays on record
    ran = {id: one for id, one in ending.items() if not statuses[id].is_finished}
    unrecorded = _record(farm, ran, reason) if ran else None
    problems |= end_processes(farm, list(ending.values()))
    for id, record in ending.items():
        if id not in problems:
            note(farm, record, "stopped")
    if unrecorded:
        problems = {id: _ended(id, unrecorded) for id in ran} | problems
    return {id: problems.get(id, id) for id in records}


def _record(farm: Farm, ran: Mapping[str, BuilderRecord], reason: str) -> AgentFarmError | None:
    """Returns why it could not be stored (a full disk, say), which must not keep a builder running."""
    try:
        with farm.registry.edit() as now:
            now.update({id: record.with_state("stopped", reason) for id, record in ran.items()})
    except DamagedFile:
        raise
    except AgentFarmError as error:
        return error
    return None


def _ended(id: str, error: AgentFarmError) -> AgentFarmError:
    return AgentFarmError(
        f"{id} has ended, but this could not be recorded", why=error.sentence, hint=error.hint
    )


def _running(context: Context) -> list[BuilderRecord]:
    records = context.farm.records()
    statuses = read_statuses(context.farm, records.values())
    may_run = ("queued", *ALIVE, "unknown")  # a builder that could not be asked about is not gone
    return [record for record in records.values() if statuses[record.id].state in may_run]
