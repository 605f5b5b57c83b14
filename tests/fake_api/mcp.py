"""An MCP server with one tool, over streamable HTTP and over the older SSE; it wants its bearer token.

The tool echoes a text, and takes N seconds for the text "wait N s".
"""

from __future__ import annotations

import json
import queue
import re
import time
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from agent_farm.pane.journal import TOOLS_TOLD, record_event

SseSession = tuple["queue.Queue[Any]", str]
_EMPTY_LISTS = {
    "resources/list": "resources",
    "prompts/list": "prompts",
    "resources/templates/list": "resourceTemplates",
}
_TOOL = {
    "name": "echo_note",
    "description": "Echo a note back.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
}


def answer_http(handler: Any, query: str, body: Any) -> None:
    if not _is_allowed(handler):
        return
    if seconds := _slow(body):
        _answer_slowly(handler, query, body, seconds)
        return
    lists_tools = isinstance(body, dict) and body.get("method") == "tools/list"
    if lists_tools:
        time.sleep(handler.api.tools_take)
    answers = [_rpc(message, query) for message in (body if isinstance(body, list) else [body])]
    answers = [answer for answer in answers if answer]
    if not answers:
        handler.send_empty(202)
        return
    first = isinstance(body, dict) and body.get("method") == "initialize"
    handler.send_json(
        answers if isinstance(body, list) else answers[0],
        headers={"Mcp-Session-Id": uuid.uuid4().hex} if first else {},
    )
    directory = handler.api.run_directory
    if lists_tools and directory and (directory / "launch.json").is_file():
        _note_tools(directory)


def _note_tools(run_directory: Path) -> None:
    run = json.loads((run_directory / "launch.json").read_text())["run"]
    event = {"at": time.time(), "run": run, "source": "af", "event": TOOLS_TOLD, "state": None}
    record_event(str(run_directory), event)


def _slow(body: Any) -> int:
    """The seconds of a call that asks for some."""
    params = body.get("params") if isinstance(body, dict) else None
    given = params.get("arguments") if isinstance(params, dict) else None
    found = re.fullmatch(r"wait (\d+) s", str(given.get("text"))) if isinstance(given, dict) else None
    return int(found[1]) if found else 0


def _answer_slowly(handler: Any, query: str, body: Any, seconds: int) -> None:
    """As the farm's own server does: an event stream that begins at once and shows that it lives."""
    handler.start_events()
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 15))
        handler.wfile.write(b": ping\n\n")
        handler.wfile.flush()
    handler.send_event(_rpc(body, query), "message")


def open_sse(handler: Any, query: str) -> None:
    if not _is_allowed(handler):
        return
    session, answers = uuid.uuid4().hex, queue.Queue[Any]()
    handler.api.sse[session] = (answers, query)
    handler.start_events()
    handler.send_event("/messages?session_id=" + session, "endpoint")
    try:
        while True:
            handler.send_event(answers.get(timeout=60), "message")
    except (OSError, queue.Empty):
        handler.api.sse.pop(session, None)


def answer_sse(handler: Any, query: str, body: Any) -> None:
    session = (parse_qs(query).get("session_id") or [""])[0]
    if session not in handler.api.sse:
        handler.send_json({"error": "no session"}, 404)
        return
    answers, opened_with = handler.api.sse[session]
    handler.send_empty(202)
    answer = _rpc(body, opened_with)
    if answer:
        answers.put(answer)


def _is_allowed(handler: Any) -> bool:
    if handler.headers.get("Authorization") == f"Bearer {handler.api.token}":
        return True
    handler.send_json({"error": "unauthorized"}, 401, {"WWW-Authenticate": "Bearer"})
    return False


def _rpc(message: dict[str, Any], query: str) -> dict[str, Any] | None:
    if message.get("id") is None:
        return None
    result = _result(str(message.get("method")), message.get("params") or {}, query)
    if result is None:
        error = {"code": -32601, "message": f"no method {message.get('method')}"}
        return {"jsonrpc": "2.0", "id": message["id"], "error": error}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def _result(method: str, params: dict[str, Any], query: str) -> dict[str, Any] | None:
    if method == "initialize":
        return {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake-mcp", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [_TOOL]}
    if method == "tools/call":
        text = (params.get("arguments") or {}).get("text")
        return {"content": [{"type": "text", "text": f"echo[{query}] {text}"}], "isError": False}
    if method in ("ping", "logging/setLevel"):
        return {}
    return {_EMPTY_LISTS[method]: []} if method in _EMPTY_LISTS else None
