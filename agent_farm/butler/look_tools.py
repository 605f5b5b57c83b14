"""MCP tools for an architect: a builder's screen, what happened to it, where it works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer

from agent_farm.butler.tool_box import in_thread, tool
from agent_farm.errors import UsageError
from agent_farm.farm.farm import Farm

OpenFarm = Callable[[], Farm]


def add_look_tools(server: MCPServer[Any], open_farm: OpenFarm) -> None:
    @tool(server)
    async def capture(id: str, history: int = 0) -> dict[str, Any]:
        """What a builder's screen shows now, with `history` lines above it."""
        return await in_thread("look", _capture, open_farm, id, history)

    @tool(server)
    async def logs(id: str, limit: int = 100) -> dict[str, Any]:
        """The newest events of a builder's launcher and runtime, oldest first; `limit` 0 gives all."""
        return await in_thread("look", _logs, open_farm, id, limit)

    @tool(server)
    async def path(id: str) -> dict[str, Any]:
        """The absolute path of a builder's worktree."""

        def find() -> dict[str, Any]:
            record = open_farm().require(id)
            return {"id": record.id, "path": record.worktree}

        return await in_thread("look", find)


def _capture(open_farm: OpenFarm, id: str, history: int) -> dict[str, Any]:
    from agent_farm.farm.panes import require_pane

    if history < 0:
        raise UsageError(f"history is {history}; it is a number of lines")
    record = open_farm().require(id)
    server, pane = require_pane(record)
    return {"id": record.id, "screen": server.capture(pane.pane_id, history=history, escapes=False)}


def _logs(open_farm: OpenFarm, id: str, limit: int) -> dict[str, Any]:
    from dataclasses import asdict

    from agent_farm.builders.events import load_events

    if limit < 0:
        raise UsageError(f"limit is {limit}; 0 gives all events")
    farm = open_farm()
    record = farm.require(id)
    events = load_events(farm.run(record.id).events)
    return {"id": record.id, "events": [asdict(event) for event in events[-limit:]]}
