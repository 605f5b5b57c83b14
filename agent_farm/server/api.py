"""The HTTP door: `GET /api/<verb>` for what reads, `POST` for what changes, with the verb's JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.operations.operation import Context, Operation
from agent_farm.operations.requests import list_fields, read_request
from agent_farm.server.answering import answer_to
from agent_farm.server.answers import answer_bug, answer_error, encode, refuse

MOST_BYTES = 8 * 1024 * 1024

OpenContext = Callable[[Operation[Any, Any]], Context]


def route_of(operation: Operation[Any, Any], open_context: OpenContext) -> Route:
    async def endpoint(request: Request) -> Response:
        return await _respond(operation, open_context, request)

    methods = ["GET"] if operation.effect == "reads" else ["POST"]
    return Route(f"/api/{operation.name}", endpoint, methods=methods, name=operation.name)


async def _respond(operation: Operation[Any, Any], open_context: OpenContext, request: Request) -> Response:
    try:
        asked = await _read(operation, request)
        document = await answer_to(operation, open_context(operation), asked)
        return Response(encode(document), media_type="application/json")
    except _TooLarge:
        return refuse(413, "too-large", f"The body is larger than {MOST_BYTES} bytes")
    except AgentFarmError as error:
        return answer_error(error)
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        return answer_error(AgentFarmError(f"{error.strerror or error}{place}"))
    except Exception as error:
        return answer_bug(error, operation.name)


class _TooLarge(Exception):
    pass


async def _read(operation: Operation[Any, Any], request: Request) -> Any:
    if operation.effect == "reads":
        return read_request(operation, _query(request, list_fields(operation.request)), lax=True)
    document = _parsed(await _bytes(request))
    if not isinstance(document, dict):
        raise UsageError("The body must be a JSON object")
    return read_request(operation, document)


def _query(request: Request, lists: Collection[str]) -> dict[str, Any]:
    """`ids=a&ids=b` is a list, and so is one alone where the verb takes a list."""
    found: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        found.setdefault(name, []).append(value)
    return {name: values if name in lists else values[-1] for name, values in found.items()}


async def _bytes(request: Request) -> bytes:
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > MOST_BYTES:
            raise _TooLarge
    return bytes(data)


def _parsed(data: bytes) -> object:
    if not data:
        return {}
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError("The body is not JSON", why=str(error)) from error
