"""A builder's journal says when the server has told its tools: claude's first prompt waits for that."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

from agent_farm.butler.tool_box import in_thread
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.farm.own_events import note
from agent_farm.pane.journal import TOOLS_TOLD
from agent_farm.server.auth import caller_in


class ToolsTold:
    def __init__(self, open_farm: Callable[[], Farm]) -> None:
        self._open_farm = open_farm

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method == "tools/list" and (caller := caller_in(ctx)).kind == "builder":
            await in_thread("report", self._note, caller.id)
        return result

    def _note(self, builder: str) -> None:
        farm = self._open_farm()
        with suppress(AgentFarmError):  # its record has gone meanwhile
            note(farm, farm.require_exact(builder), TOOLS_TOLD, "the server told its tools")
