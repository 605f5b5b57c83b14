"""MCP tools for an architect: what `af resume` does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer

from agent_farm.butler.tool_box import in_thread, tool
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import list_builders
from agent_farm.launch import as_command
from agent_farm.sessions.agreement import agreed_before

OpenFarm = Callable[[], Farm]


def add_life_tools(server: MCPServer[Any], open_farm: OpenFarm) -> None:
    @tool(server)
    async def resume(id: str) -> dict[str, Any]:
        """Start a builder's runtime again; `continues` says whether its conversation goes on."""
        return await in_thread("start", _resume, open_farm, id)


def _resume(open_farm: OpenFarm, id: str) -> dict[str, Any]:
    from agent_farm.farm.resume import resume

    farm = open_farm()
    record = farm.require(id)
    with agreed_before(as_command("af", "resume", "--yes", record.id)):
        resumed = resume(farm, record)
    builder = list_builders(farm, [record.id], with_git=False)[0].to_json()
    return {"builder": builder, "continues": resumed.continues}
