"""Asking a running server for a session: POST /run, events line by line."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from agent_farm.errors import AgentFarmError
from agent_farm.server.address import ServerAddress
from agent_farm.sessions.result import SpawnerResult, result_from
from agent_farm.sessions.run_request import RunRequest
from agent_farm.sessions.telemetry import parse_traceparent

Event = Mapping[str, Any]
__all__ = ["RunRequest", "call_tool", "request_session", "start_session"]
OnEvent = Callable[[Event], None]


def request_session(address: ServerAddress, request: RunRequest, on_event: OnEvent) -> SpawnerResult:
    """Run one session on the server and wait for its result; expected errors come back as errors."""
    result = None
    for event in _events(address, request):
        if event["event"] == "error":
            raise _error(event)
        if event["event"] == "result":
            result = result_from(event["result"])
        else:
            on_event(event)
    if result is None:
        raise AgentFarmError(
            "The server ended before the session did",
            why="Its record says what became of it.",
            hint="af sessions",
        )
    return result


def start_session(address: ServerAddress, request: RunRequest) -> SpawnerResult | str:
    """Hand a session over; its id once it is accepted, or the result when it was refused."""
    for event in _events(address, request):
        if event["event"] == "error":
            raise _error(event)
        if event["event"] == "result":
            return result_from(event["result"])
        return str(event["session_id"])
    raise AgentFarmError("The server gave no answer", hint="af butler logs")


def call_tool(
    address: ServerAddress, name: str, arguments: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What an MCP tool of a running server answers to the architect."""
    params = {"name": name, "arguments": dict(arguments or {})}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {**_headers(address), "Accept": "application/json, text/event-stream"}
    with _posted(address, "/mcp", body, headers) as response:
        result = _last_message(response)["result"]
    if result.get("isError"):
        raise AgentFarmError(str(result["content"][0]["text"]))
    return dict(result["structuredContent"])


def _last_message(response: http.client.HTTPResponse) -> dict[str, Any]:
    """The answer is the last event of a stream; what comes before it are pings and progress."""
    events = [line.removeprefix(b"data:") for line in response if line.startswith(b"data:")]
    return dict(json.loads(events[-1]))


def _headers(address: ServerAddress) -> dict[str, str]:
    return {"Authorization": f"Bearer {address.token}", "Content-Type": "application/json"}


@contextmanager
def _posted(
    address: ServerAddress, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("localhost", address.port)
    try:
        connection.request("POST", path, json.dumps(body), dict(headers))
        response = connection.getresponse()
        if response.status != 200:
            detail = response.read().decode(errors="replace")
            raise AgentFarmError(f"The server answered {response.status}", why=detail, hint="af butler logs")
        yield response
    except (OSError, http.client.HTTPException) as error:
        raise AgentFarmError(
            f"The connection to the server on port {address.port} was lost",
            why=str(error) or type(error).__name__,
            hint="af sessions",
        ) from error
    finally:
        connection.close()


def _events(address: ServerAddress, request: RunRequest) -> Iterator[Event]:
    headers = _headers(address)
    if trace := parse_traceparent(request.traceparent):
        headers["traceparent"] = trace.traceparent
    with _posted(address, "/run", request.to_json(), headers) as response:
        while line := response.readline():
            yield json.loads(line)


def _error(event: Event) -> AgentFarmError:
    error = AgentFarmError(
        event["what"], why=event["why"], hint=event["hint"], evidence=event.get("evidence") or ()
    )
    error.code, error.exit_code = event["code"], event["exit_code"]
    return error
