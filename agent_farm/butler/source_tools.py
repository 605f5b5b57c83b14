"""MCP tools about local sources: what `af sources list` and `af ask` do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mcp.server import MCPServer

from agent_farm.butler.tool_box import in_thread, tool
from agent_farm.farm.farm import Farm

_SECONDS = 900.0


def add_source_tools(server: MCPServer[Any], open_farm: Callable[[], Farm]) -> None:
    @tool(server)
    async def list_sources() -> dict[str, Any]:
        """The user's local sources (repositories, directories, files) that questions can be asked about."""
        from agent_farm.ask import uses

        return {"sources": await in_thread("sources", uses.list_sources)}

    @tool(server)
    async def ask_sources(sources: list[str], question: str) -> dict[str, Any]:
        """Have the user's AI CLI answer a question from the named sources; it sees them and no MCP server."""
        from agent_farm.ask import uses

        runtime = open_farm().settings.text("spawn.runtime")
        asked = partial(uses.ask, runtime=runtime, timeout=_SECONDS)
        return dict(await in_thread("ask", asked, sources, question))
