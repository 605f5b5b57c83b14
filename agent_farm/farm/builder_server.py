"""A builder's one MCP server: its farm's, under a token of its own."""

from __future__ import annotations

from agent_farm.farm.farm import Farm
from agent_farm.runtimes.mcp_config import McpServer


def builder_server(farm: Farm, builder_id: str) -> McpServer | None:
    """The farm's server as this builder may use it, started if need be and never waited for.

    None with `[server] enabled = false`: the runtime then gets a strict and empty MCP configuration.
    """
    if not farm.settings.flag("server.enabled"):
        return None
    from agent_farm.server.launching import ensure_server, mint_builder_token
    from agent_farm.sessions.butlers import load_butler

    address = ensure_server(farm.root)
    token = mint_builder_token(farm.root, builder_id)
    return McpServer(load_butler(farm.root).name, address.mcp_url(builder_id), token)
