"""`stop`: runtimes end; worktree, branch and conversation stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import ALIVE, State
from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.farm.ending import end_processes
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_status, read_statuses
from agent_farm.farm.locks import hold
from agent_farm.farm.own_events import note
from agent_farm.farm.panes import find_pane, not_asked
from agent_farm.farm.waiting import forget_queued, start_later
from agent_farm.operations.builders import BuilderIds, choose_each, each, exit_code_of, failures_of
from agent_farm.operations.operation import Answer, Context, Failure, Operation, Request


class Stop(Request):
    ids: BuilderIds = ()
    all: Annotated[bool, Meta(description="Stop every builder that runs")] = False


class Forgotten(Answer):
    """One that waited in the queue, and was never made."""

    id: str
    prompt: Annotated[str | None, Meta(description="The file that keeps what it was to do")]


class Stopped(Answer):
    stopped: tuple[str, ...]
    forgotten: tuple[Forgotten, ...] = ()
    failed: tuple[Failure, ...] = ()

    @property
    def exit_code(self) -> int:
        return exit_code_of(self.failed)


Part = str | Forgotten | Failure


def _run(context: Context, request: Stop) -> Iterator[Part]:
    if bool(request.ids) == request.all:
        raise UsageError("Name the builders to stop, or all of them", hint="af stop --help")
    records, unknown = (_running(context), ()) if request.all else choose_each(context, request.ids)
    yield from unknown
    # those that wait first: else they would start in the place of those that are stopped
    waiting_first = sorted(records, key=lambda record: record.state != "queued")
    yield from each(waiting_first, lambda record: _stop(context.farm, record), alone=not unknown)
    start_later(context.farm)


def forget(farm: Farm, record: BuilderRecord) -> Forgotten | None:
    """Take one that waits out of the queue; None where it does not wait, or not any more."""
    if record.state != "queued":
        return None
    kept = forget_queued(farm, record)
    if kept is None:
        return None
    return Forgotten(record.id, str(kept) if kept.exists() else None)


def _stop(farm: Farm, record: BuilderRecord) -> str | Forgotten:
    return forget(farm, record) or stop_running(farm, record, "by af stop")


def stop_running(farm: Farm, record: BuilderRecord, reason: str, *, only: State | None = None) -> str:
    """With `only` it is refused when it is in another state by now."""
    with hold(farm, record.id) as record:
        status = read_status(farm, record)
        if only is not None and status.state != only:
            raise AgentFarmError(f"{record.id} is {status.state} by now")
        if status.state == "unknown" and not find_pane(record).known:
            raise not_asked(record, status.reason)  # unlike a runtime that lives without its tmux server
        if not status.is_finished:  # how a runtime ended by itself stays on record
            record = farm.registry.put(record.with_state("stopped", reason))
        end_processes(farm, record)
        note(farm, record, "stopped")
        return record.id


def _running(context: Context) -> list[BuilderRecord]:
    records = context.farm.records()
    statuses = read_statuses(context.farm, records.values())
    may_run = ("queued", *ALIVE, "unknown")  # what could not be asked is not gone
    return [record for record in records.values() if statuses[record.id].state in may_run]


def _collect(parts: Sequence[Part]) -> Stopped:
    return Stopped(
        stopped=tuple(part for part in parts if isinstance(part, str)),
        forgotten=tuple(part for part in parts if isinstance(part, Forgotten)),
        failed=failures_of(parts),
    )


STOP = Operation(
    "stop",
    "End runtimes; worktree, branch and conversation stay",
    Stop,
    Stopped,
    _run,
    _collect,
    effect="changes",
    tolerant=True,
    repeats=True,
    details="One that waits in the queue is taken out of it.",
)
