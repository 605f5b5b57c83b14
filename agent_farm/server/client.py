"""Asks the farm's server for a verb; the server is started if it is not running."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from agent_farm.errors import AgentFarmError, UsageError, error_of
from agent_farm.server.address import ServerAddress
from agent_farm.server.launching import ensure_server, running_server
from agent_farm.server.variables import SHELL_HEADER, header_of, own_shell
from agent_farm.sessions.telemetry import parse_traceparent

T = TypeVar("T")

LINES = "application/x-ndjson"
BEGIN_SECONDS = 60.0
_HINT = "af sessions"


def ask_server(
    root: Path,
    verb: str,
    request: object,
    tell: Callable[[str], None],
    environ: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The verb's document. Messages from the server are passed to `tell`; an expected error is raised.

    `environ` are variables of the calling shell besides those of this process.
    """
    with _answered(root, verb, request, environ or {}) as response:
        while line := response.readline():
            said = _read(line)
            if "told" in said:
                tell(said["told"])
            elif "error" in said:
                raise error_of(**said["error"])
            else:
                return dict(said)
    raise AgentFarmError(
        "The server ended before it had answered", why="The record says what became of it.", hint=_HINT
    )


def _read(line: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(line))
    except ValueError as error:
        said = line[:200].decode(errors="replace")
        raise AgentFarmError("The server's answer is not JSON", why=said, hint="af butler logs") from error


def caller_headers(root: Path, address: ServerAddress, environ: Mapping[str, str]) -> dict[str, str]:
    """Headers that say who asks, and which variables of the shell a session may need; stored nowhere."""
    headers = {
        "Authorization": f"Bearer {address.token}",
        "Content-Type": "application/json",
        SHELL_HEADER: header_of(own_shell(root, environ)),
    }
    if trace := parse_traceparent(os.environ.get("TRACEPARENT")):
        headers["traceparent"] = trace.traceparent
    return headers


def post(
    root: Path, path: str, body: bytes, headers: Mapping[str, str], environ: Mapping[str, str] | None = None
) -> http.client.HTTPConnection:
    """A connection on which the request was sent; `begun` gets the response."""
    address = ensure_server(root)
    connection = http.client.HTTPConnection("localhost", address.port, timeout=BEGIN_SECONDS)
    try:
        connection.request("POST", path, body, {**caller_headers(root, address, environ or {}), **headers})
    except BaseException:
        connection.close()
        raise
    return connection


def begun(connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
    """A server that is not stuck sends the response's head at once; the answer itself may take long."""
    response = connection.getresponse()
    if connection.sock is not None:
        connection.sock.settimeout(None)
    return response


def asked_again(root: Path, ask: Callable[[], T]) -> T:
    """What `ask` returns; asked again if the server ended itself at that very moment."""
    try:
        return ask()
    except ConnectionError:
        if running_server(root) is not None:
            raise
        return ask()


@contextmanager
def _answered(
    root: Path, verb: str, request: object, environ: Mapping[str, str]
) -> Iterator[http.client.HTTPResponse]:
    try:
        body = msgspec.json.encode(request)
    except UnicodeEncodeError as error:
        raise UsageError("The request is not UTF-8 text", why=str(error)) from error
    connection = None

    def ask() -> http.client.HTTPResponse:
        nonlocal connection
        connection = post(root, f"/api/{verb}", body, {"Accept": LINES}, environ)
        return begun(connection)

    try:
        yield asked_again(root, ask)
    except TimeoutError as error:
        raise AgentFarmError(
            "The farm's server does not answer",
            why=f"It has said nothing for {BEGIN_SECONDS:g} s.",
            hint="af butler stop --now",
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise AgentFarmError(
            "The connection to the farm's server was lost", why=str(error) or type(error).__name__, hint=_HINT
        ) from error
    finally:
        if connection is not None:
            connection.close()
