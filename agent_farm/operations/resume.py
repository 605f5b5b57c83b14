"""`resume`: a builder's runtime starts again, with the same conversation and the same role."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from agent_farm.farm.resume import resume
from agent_farm.operations.builders import BuilderId, Yes, choose
from agent_farm.operations.operation import Answer, Context, Operation, Request, only, single
from agent_farm.operations.shown import BuilderShown, show_builder


class Resume(Request):
    id: BuilderId
    say: Annotated[str | None, Meta(description="Told to a conversation that goes on")] = None
    yes: Yes = False


class Resumed(Answer):
    builder: BuilderShown
    continues: Annotated[bool, Meta(description="Whether a conversation went on")]


def _resume(context: Context, request: Resume) -> Resumed:
    farm = context.farm
    resumed = resume(farm, choose(context, request.id), say=request.say, yes=request.yes, ask=context.ask)
    return Resumed(show_builder(farm, resumed.record.id), resumed.continues)


OPERATION = Operation(
    "resume",
    "Start a builder's runtime again, with the same conversation and the same role",
    Resume,
    Resumed,
    single(_resume),
    only,
    effect="changes",
    outside=True,
    pool="start",
    details="A builder whose turn was cut short is `interrupted` until it is told to go on.",
)
