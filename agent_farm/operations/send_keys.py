"""`send_keys`: single keys into running builders, to answer a dialog."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from agent_farm.farm.send import press_all
from agent_farm.operations.builders import SomeBuilders, choose_all
from agent_farm.operations.deliveries import Delivered, Deliveries, collect_deliveries
from agent_farm.operations.operation import Context, Operation, Request
from agent_farm.tmux.keys import NAMED, parse_keys


class SendKeys(Request):
    ids: SomeBuilders
    keys: Annotated[str, Meta(description=f"Keys, separated by spaces: {' '.join(NAMED)}, or one character")]


def _run(context: Context, request: SendKeys) -> Iterator[Delivered]:
    keys = parse_keys(request.keys)
    chosen = choose_all(context, request.ids)
    for id, delivery in press_all(context.farm, chosen, keys):
        yield Delivered.of(id, delivery)


SEND_KEYS = Operation(
    "send_keys",
    "Press keys in running builders, to answer a dialog",
    SendKeys,
    Deliveries,
    _run,
    collect_deliveries,
    effect="destroys",  # it answers for a person
    tolerant=True,
    outside=True,
    pool="send",
    details="Look at the screen by `capture` before and after: what the keys do, nobody else can tell.",
)
