"""`ask_architect`: a builder asks, and waits for an answer."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from agent_farm.farm import messages
from agent_farm.operations.operation import Answer, Context, Operation, Request, only, single

_NEXT = "End your turn now. The answer arrives as a message."


class AskArchitect(Request):
    question: Annotated[str, Meta(description="What is to be answered")]


class Asked(Answer):
    asked: str
    next: Annotated[str, Meta(description="What to do until the answer comes")] = _NEXT


def _ask(context: Context, request: AskArchitect) -> Asked:
    me = context.farm.require_exact(context.caller_id)
    messages.ask_architect(context.farm, me, request.question)
    return Asked(request.question)


OPERATION = Operation(
    "ask_architect",
    "Ask the architect",
    AskArchitect,
    Asked,
    single(_ask),
    only,
    effect="changes",
    who=frozenset({"builder"}),
    tolerant=True,
    pool="report",
    details="Returns at once; end your turn, the answer comes as your next message.",
)
