"""`capture`: what a builder's screen shows now."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from agent_farm.farm.panes import require_pane
from agent_farm.operations.builders import BuilderId, choose
from agent_farm.operations.operation import Answer, Context, Operation, Request, only, single


class Capture(Request):
    id: BuilderId
    history: Annotated[int, Meta(ge=0, description="Lines above the screen to add")] = 0
    escapes: Annotated[bool, Meta(description="Keep colours")] = False


class Captured(Answer):
    id: str
    screen: str


def _capture(context: Context, request: Capture) -> Captured:
    record = choose(context, request.id)
    server, pane = require_pane(record)
    screen = server.capture(pane.pane_id, history=request.history, escapes=request.escapes)
    return Captured(id=record.id, screen=screen)


OPERATION = Operation(
    "capture",
    "Print what a builder's screen shows now",
    Capture,
    Captured,
    single(_capture),
    only,
    effect="reads",
    tolerant=True,
    pool="look",
)
