"""`logs`: what happened to a builder."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from agent_farm.builders.events import Event, load_events
from agent_farm.operations.builders import BuilderId, choose
from agent_farm.operations.operation import Answer, Context, Operation, Request, only, single


class Logs(Request):
    id: BuilderId
    limit: Annotated[int, Meta(ge=0, description="The newest so many events; 0: all")] = 100


class Logged(Answer):
    id: str
    events: Annotated[
        tuple[Event, ...], Meta(description="The oldest first; a moment is in seconds since 1970")
    ]


def _read(context: Context, request: Logs) -> Logged:
    record = choose(context, request.id)
    events = load_events(context.farm.run(record.id).events)
    return Logged(id=record.id, events=tuple(events[-request.limit :]))


OPERATION = Operation(
    "logs",
    "Print what happened to a builder: events of its launcher and its runtime",
    Logs,
    Logged,
    single(_read),
    only,
    effect="reads",
    tolerant=True,
    pool="look",
)
