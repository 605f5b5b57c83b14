"""`message_builder`: one builder writes to another."""

from __future__ import annotations

from agent_farm.farm.send import send
from agent_farm.operations.builders import BuilderId, choose
from agent_farm.operations.deliveries import Delivered
from agent_farm.operations.operation import Context, Operation, Request, single
from agent_farm.operations.send import Message


class MessageBuilder(Request):
    id: BuilderId
    text: Message


def _send(context: Context, request: MessageBuilder) -> Delivered:
    record = choose(context, request.id)
    signature = f"Message from builder {context.caller_id}: " if context.caller == "builder" else ""
    return Delivered.of(record.id, send(context.farm, record, signature + request.text))


MESSAGE_BUILDER = Operation(
    "message_builder",
    "Type a message into a builder's session; that of another builder is signed with its id",
    MessageBuilder,
    Delivered,
    single(_send),
    effect="changes",
    who=frozenset({"architect", "builder"}),
    tolerant=True,
    outside=True,
    pool="send",
)
