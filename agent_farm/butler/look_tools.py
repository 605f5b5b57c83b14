"""MCP tools for an architect: what happened to a builder, where it works."""

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


def _logs(open_farm: OpenFarm, id: str, limit: int) -> dict[str, Any]:
    from dataclasses import asdict

    from agent_farm.builders.events import load_events

    if limit < 0:
        raise UsageError(f"limit is {limit}; 0 gives all events")
    farm = open_farm()
    record = farm.require(id)
    events = load_events(farm.run(record.id).events)
    return {"id": record.id, "events": [asdict(event) for event in events[-limit:]]}
