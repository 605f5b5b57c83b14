"""How a session's runtime reaches its butler's MCP server."""

from __future__ import annotations

from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.mcp_config import Transport

_NAMES = {"http": "streamable HTTP", "sse": "SSE"}


def transport_problem(adapter: RuntimeAdapter, transport: Transport) -> str | None:
    """Why the runtime cannot use `transport`, and what to write instead."""
    if transport in adapter.cli.transports:
        return None
    spoken = " and ".join(_NAMES[name] for name in adapter.cli.transports)
    return f'{adapter.name} speaks {spoken} only: write transport = "{adapter.cli.transports[0]}".'
