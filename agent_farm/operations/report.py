"""`report`: a builder tells the architect how it is."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from agent_farm.farm import messages
from agent_farm.operations.operation import Answer, Context, Operation, Request, only, single

Reported = Literal["working", "waiting", "idle"]


class Report(Request):
    state: Annotated[Reported, Meta(description="How you are")]
    message: Annotated[str, Meta(description="One line of why")]


class ReportKept(Answer):
    state: Reported


def _keep(context: Context, request: Report) -> ReportKept:
    me = context.farm.require_exact(context.caller_id)
    messages.report(context.farm, me, request.state, request.message)
    return ReportKept(request.state)


OPERATION = Operation(
    "report",
    "Tell the architect how you are",
    Report,
    ReportKept,
    single(_keep),
    only,
    effect="changes",
    who=frozenset({"builder"}),
    tolerant=True,
    repeats=True,
)
