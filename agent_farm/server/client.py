"""Asking the server that runs a butler's sessions, which is started when there is none."""

from __future__ import annotations

import base64
import http.client
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from agent_farm.errors import AgentFarmError
from agent_farm.server.address import ServerAddress
from agent_farm.server.launching import ensure_server, running_server
from agent_farm.server.variables import carried_environment
from agent_farm.sessions.session import SessionRequest, SpawnerResult, result_of
from agent_farm.sessions.telemetry import parse_traceparent

ENVIRONMENT_HEADER = "Af-Environment"

Event = Mapping[str, Any]
OnEvent = Callable[[Event], None]


def run_session(
    root: Path, butler: str | None, request: SessionRequest, on_event: OnEvent, *, attached: bool = False
) -> SpawnerResult:
    """Wait for one session's result; expected errors come back as errors.

    `attached`: the session is cancelled when this process goes away.
    """
    result, session_id = None, str(uuid.uuid4())  # chosen here: an interrupt may come before any answer
    try:
        for event in _events(root, butler, request, attached=attached, session_id=session_id):
            if event["event"] == "result":
                result = result_of(event["result"])
            else:
                on_event(event)
    except KeyboardInterrupt:
        if attached:
            _await_end(root, butler, session_id)
        raise
    if result is None:
        raise AgentFarmError(
            "The server ended before the session did",
            why="Its record says what became of it.",
            hint="af sessions",
        )
    return result


def _await_end(root: Path, butler: str | None, session_id: str) -> None:
    """Who ends its command finds its session ended, with every process that it started."""
    with suppress(AgentFarmError):
        stop_session(root, butler, session_id, "its caller")


def start_session(root: Path, butler: str | None, request: SessionRequest) -> SpawnerResult | str:
    """Hand a session over; its id once it is accepted, or the result when it was refused."""
    for event in _events(root, butler, request):
        if event["event"] == "result":
            return result_of(event["result"])
        return str(event["session_id"])
    raise AgentFarmError("The server gave no answer", hint="af butler logs")


def stop_session(root: Path, butler: str | None, session_id: str, by: str) -> dict[str, Any]:
    """The record of a session once it has ended; only the server that runs it can end it."""
    with _posted(root, butler, "/stop", {"session_id": session_id, "by": by}) as response:
        answer: dict[str, Any] = json.loads(response.readline())
    if answer["event"] == "error":
        raise _error(answer)
    return dict(answer["session"])


def caller_headers(address: ServerAddress, environ: Mapping[str, str]) -> dict[str, str]:
    """Who asks, and what of the environment a session may need that is asked for: told, written nowhere."""
    variables = json.dumps(dict(environ)).encode()
    return {
        "Authorization": f"Bearer {address.token}",
        "Content-Type": "application/json",
        ENVIRONMENT_HEADER: base64.b64encode(variables).decode(),
    }


def _events(
    root: Path,
    butler: str | None,
    request: SessionRequest,
    *,
    attached: bool = False,
    session_id: str | None = None,
) -> Iterator[Event]:
    body = {"request": msgspec.to_builtins(request), "attached": attached, "session_id": session_id}
    with _posted(root, butler, "/run", body) as response:
        while line := response.readline():
            event = json.loads(line)
            if event["event"] == "error":
                raise _error(event)
            yield event


@contextmanager
def _posted(
    root: Path, butler: str | None, path: str, body: Mapping[str, Any]
) -> Iterator[http.client.HTTPResponse]:
    environ = carried_environment(root, butler, os.environ)
    address = ensure_server(root, butler)
    connection = http.client.HTTPConnection("localhost", address.port)
    try:
        try:
            response = _ask(connection, address, path, body, environ)
        except ConnectionError:
            if running_server(root, butler) is not None:
                raise
            # it ended itself, having had nothing to do, at the very moment it was asked
            connection.close()
            address = ensure_server(root, butler)
            connection = http.client.HTTPConnection("localhost", address.port)
            response = _ask(connection, address, path, body, environ)
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


def _ask(
    connection: http.client.HTTPConnection,
    address: ServerAddress,
    path: str,
    body: Mapping[str, Any],
    environ: Mapping[str, str],
) -> http.client.HTTPResponse:
    headers = caller_headers(address, environ)
    if trace := parse_traceparent(os.environ.get("TRACEPARENT")):
        headers["traceparent"] = trace.traceparent
    connection.request("POST", path, json.dumps(body), headers)
    return connection.getresponse()


def _error(event: Event) -> AgentFarmError:
    error = AgentFarmError(
        event["what"], why=event["why"], hint=event["hint"], evidence=event.get("evidence") or ()
    )
    error.code, error.exit_code = event["code"], event["exit_code"]
    return error
