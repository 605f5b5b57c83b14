"""Checks that the one MCP server answers and accepts the token, for CLIs that silently go on without it."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request

from agent_farm.runtimes.mcp_config import McpServer
from agent_farm.runtimes.result import Failure

_SECONDS = 10.0
USER_AGENT = "agent-farm-probe"


async def probe_server(server: McpServer) -> Failure | None:
    """None if it answers. This opens no session, because servers answer a ping at any time."""
    return await asyncio.to_thread(_ask, server)


def _ask(server: McpServer) -> Failure | None:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers["User-Agent"] = USER_AGENT
    if server.token:
        headers["Authorization"] = f"Bearer {server.token}"
    question = None
    if server.transport == "http":
        question = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "ping"}).encode()
    request = urllib.request.Request(server.url, data=question, headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_SECONDS):
            return None
    except urllib.error.HTTPError as error:
        if error.code not in (401, 403):
            return None  # it answers, and how it answers a ping does not matter
        return Failure("mcp-unreachable", f"MCP server {server.name} refused the token ({error.code})")
    except OSError as error:
        return Failure("mcp-unreachable", f"MCP server {server.name} does not answer: {error}")
