"""`resume`: a builder's runtime starts again, with the same conversation."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from agent_farm.farm.resume import resume
from agent_farm.operations.builders import BuilderId, Yes, choose
from agent_farm.operations.operation import Answer, Context, Operation, Request, single
from agent_farm.operations.requests import require_said
from agent_farm.operations.shown import BuilderShown, show_started


class Resume(Request):
    id: BuilderId
    say: Annotated[str | None, Meta(description="Tell it this, as in: Go on")] = None
    yes: Yes = False


class Resumed(Answer):
    builder: BuilderShown
    continues: Annotated[
        bool, Meta(description="A conversation goes on; without one it starts again with the same prompt")
    ]


def _resume(context: Context, request: Resume) -> Resumed:
    require_said(request.say)
    record = choose(context, request.id)
    found = resume(context.farm, record, say=request.say, yes=request.yes, ask=context.ask)
    return Resumed(show_started(context.farm, found.record), found.continues)


RESUME = Operation(
    "resume",
    "Start a builder's runtime again, with the same conversation and the same role",
    Resume,
    Resumed,
    single(_resume),
    effect="changes",
    outside=True,
    pool="start",
    details="A builder whose turn was cut short is `interrupted` until it is told to go on.",
)
