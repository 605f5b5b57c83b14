"""`send`: a message to running builders; "sent" means submitted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from agent_farm.farm.send import send_all
from agent_farm.operations.builders import SomeBuilders, choose_all
from agent_farm.operations.deliveries import Delivered, Deliveries, collect_deliveries
from agent_farm.operations.operation import Context, Operation, Request

Message = Annotated[str, Meta(description="The message; tab and newline are its only control characters")]


class Send(Request):
    ids: SomeBuilders
    text: Message


def _run(context: Context, request: Send) -> Iterator[Delivered]:
    chosen = choose_all(context, request.ids)
    for id, delivery in send_all(context.farm, chosen, request.text):
        yield Delivered.of(id, delivery)


SEND = Operation(
    "send",
    "Send a message to running builders",
    Send,
    Deliveries,
    _run,
    collect_deliveries,
    effect="changes",
    tolerant=True,
    outside=True,
)
