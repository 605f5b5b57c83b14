"""Calls one MCP tool over streamable HTTP, using only the standard library."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PROTOCOL = "2025-06-18"


class McpError(Exception):
    """`unreachable` tells a server that does not answer from one that refuses."""

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.unreachable = unreachable


def call_tool(config: str | None, tool: str, arguments: dict[str, object]) -> str:
    """The text that the tool answers; otherwise McpError."""
    servers = json.loads(Path(config).read_text())["mcpServers"] if config else {}
    if not servers:
        raise McpError("no MCP server is configured")
    server = _Server(next(iter(servers.values())))
    hello = {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": {"name": "demo", "version": "1"}}
    server.ask(1, "initialize", hello)
    server.ask(None, "notifications/initialized", None)
    answer = server.ask(2, "tools/call", {"name": tool, "arguments": arguments})
    text = "\n".join(part.get("text", "") for part in answer.get("content", []))
    if answer.get("isError"):
        raise McpError(text)
    return text


class _Server:
    def __init__(self, entry: dict[str, Any]) -> None:
        self._url = entry["url"]
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **{name: _expanded(value) for name, value in entry.get("headers", {}).items()},
        }
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask(self, number: int | None, method: str, params: Mapping[str, object] | None) -> dict[str, Any]:
        """The result; a message without a number has none."""
        asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        message = {name: value for name, value in asked.items() if value is not None}
        request = urllib.request.Request(self._url, json.dumps(message).encode(), self._headers)
        try:
            with self._opener.open(request, timeout=60) as response:
                if session := response.headers.get("Mcp-Session-Id"):
                    self._headers["Mcp-Session-Id"] = session
                self._headers["MCP-Protocol-Version"] = _PROTOCOL
                body = response.read().decode()
        except urllib.error.HTTPError as error:
            raise McpError(
                f"MCP server answered {error.code}", unreachable=error.code in (401, 403)
            ) from error
        except OSError as error:
            place = self._url.split("?")[0]
            raise McpError(f"MCP server at {place} does not answer: {error}", unreachable=True) from error
        return {} if number is None else _result(body, number)


def _result(body: str, number: int) -> dict[str, Any]:
    for line in [line[5:] for line in body.splitlines() if line.startswith("data:")] or [body]:
        answer = json.loads(line)
        if answer.get("id") == number:
            if "error" in answer:
                raise McpError(str(answer["error"].get("message")))
            result: dict[str, Any] = answer.get("result", {})
            return result
    raise McpError("the MCP server did not answer the call")


def _expanded(text: str) -> str:
    return re.sub(r"\$\{(\w+)\}", lambda found: os.environ.get(found[1], ""), text)
