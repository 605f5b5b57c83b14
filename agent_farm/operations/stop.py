"""`stop`: runtimes end; worktree, branch and conversation stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import ALIVE
from agent_farm.errors import UsageError
from agent_farm.farm.listing import read_statuses
from agent_farm.farm.stop import stop
from agent_farm.operations.builders import BuilderIds, choose_each, each, exit_code_of, failures_of
from agent_farm.operations.operation import Answer, Context, Failure, Operation, Request


class Stop(Request):
    ids: BuilderIds = ()
    all: Annotated[bool, Meta(description="Stop every builder that runs")] = False


class Stopped(Answer):
    stopped: tuple[str, ...]
    failed: tuple[Failure, ...] = ()

    @property
    def exit_code(self) -> int:
        return exit_code_of(self.failed)


def _run(context: Context, request: Stop) -> Iterator[str | Failure]:
    if bool(request.ids) == request.all:
        raise UsageError("Name builders, or all of them", hint="af stop --help")
    records, unknown = (_running(context), ()) if request.all else choose_each(context, request.ids)
    yield from unknown
    yield from each(records, lambda record: stop(context.farm, record).id, alone=not unknown)


def _running(context: Context) -> list[BuilderRecord]:
    records = context.farm.records()
    statuses = read_statuses(context.farm, records.values())
    may_run = (*ALIVE, "unknown")  # what could not be asked is not gone
    return [record for record in records.values() if statuses[record.id].state in may_run]


def _collect(parts: Sequence[str | Failure]) -> Stopped:
    return Stopped(stopped=tuple(part for part in parts if isinstance(part, str)), failed=failures_of(parts))


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
)
