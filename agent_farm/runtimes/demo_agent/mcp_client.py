"""One MCP tool call over streamable HTTP, with nothing but the standard library."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

_PROTOCOL = "2025-06-18"


class McpError(Exception):
    """`unreachable` tells a server that does not answer from one that says no."""

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.unreachable = unreachable


def call_tool(config: Path | None, tool: str, arguments: dict[str, object]) -> str:
    """The text a tool answers with; McpError otherwise."""
    server = _only_server(config)
    headers = {name: _expanded(value) for name, value in server.get("headers", {}).items()}
    hello = {
        "protocolVersion": _PROTOCOL,
        "capabilities": {},
        "clientInfo": {"name": "demo", "version": "1"},
    }
    _, session = _request(server["url"], headers, {"id": 1, "method": "initialize", "params": hello})
    headers["MCP-Protocol-Version"] = _PROTOCOL
    if session:
        headers["Mcp-Session-Id"] = session
    _request(server["url"], headers, {"method": "notifications/initialized"})
    call = {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    answer, _ = _request(server["url"], headers, call)
    text = "\n".join(part.get("text", "") for part in answer.get("content", []))
    if answer.get("isError"):
        raise McpError(text)
    return text


def _only_server(config: Path | None) -> dict[str, Any]:
    servers = json.loads(config.read_text())["mcpServers"] if config else {}
    if not servers:
        raise McpError("no MCP server is configured")
    server: dict[str, Any] = next(iter(servers.values()))
    return server


def _request(
    url: str, headers: dict[str, str], message: dict[str, object]
) -> tuple[dict[str, Any], str | None]:
    import urllib.error
    import urllib.request

    request = urllib.request.Request(
        url,
        data=json.dumps({"jsonrpc": "2.0", **message}).encode(),
        headers={
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **headers,
        },
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=60) as response:
            return _result(response.read().decode(), message), response.headers.get("Mcp-Session-Id")
    except urllib.error.HTTPError as error:
        raise McpError(f"MCP server answered {error.code}", unreachable=error.code in (401, 403)) from error
    except OSError as error:
        raise McpError(
            f"MCP server at {url.split('?')[0]} does not answer: {error}", unreachable=True
        ) from error


def _result(body: str, message: dict[str, object]) -> dict[str, Any]:
    if "id" not in message:
        return {}
    lines = [line[5:] for line in body.splitlines() if line.startswith("data:")] or [body]
    for line in lines:
        answer = json.loads(line)
        if answer.get("id") == message["id"]:
            if "error" in answer:
                raise McpError(str(answer["error"].get("message")))
            result: dict[str, Any] = answer.get("result", {})
            return result
    raise McpError("MCP server gave no answer to the call")


def _expanded(text: str) -> str:
    return re.sub(r"\$\{(\w+)\}", lambda found: os.environ.get(found[1], ""), text)
