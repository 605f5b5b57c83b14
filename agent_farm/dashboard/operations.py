"""Operation: one call of the API, as a row that both the router and the OpenAPI description are made from."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_farm.dashboard.desk import Desk
from agent_farm.dashboard.values import Field, check_body, check_query
from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.server.answers import answer, answer_bug, answer_error, refuse

MOST_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    """What a request said, checked."""

    path: Mapping[str, str]
    query: Mapping[str, Any]
    body: Mapping[str, Any]


Handler = Callable[[Desk, Call], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Operation:
    """`handler` may block: it runs on a thread. `answers` names the one key of its answer and its schema."""

    method: str
    path: str
    name: str
    text: str
    handler: Handler
    answers: Mapping[str, Any]
    query: tuple[Field, ...] = ()
    body: tuple[Field, ...] | None = None
    status: int = 200

    def route(self, desk: Desk) -> Route:
        async def endpoint(request: Request) -> Response:
            return await respond(self, desk, request)

        return Route(self.path, endpoint, methods=[self.method], name=self.name)


async def respond(operation: Operation, desk: Desk, request: Request) -> Response:
    where = f"{operation.method} {operation.path}"
    try:
        call = await _read(operation, request)
        document = await desk.run(operation.handler, desk, call)
        return answer(document, operation.status)
    except _TooLarge:
        return refuse(413, "too-large", f"The body is larger than {MOST_BYTES} bytes")
    except AgentFarmError as error:
        return answer_error(error)
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        return answer_error(AgentFarmError(f"{error.strerror or error}{place}"))
    except Exception as error:
        return answer_bug(error, where)


class _TooLarge(Exception):
    pass


async def _read(operation: Operation, request: Request) -> Call:
    given: dict[str, list[str]] = {}
    for name, value in request.query_params.multi_items():
        given.setdefault(name, []).append(value)
    query = check_query(operation.query, given)
    body: dict[str, Any] = {}
    if operation.body is not None:
        body = check_body(operation.body, _parsed(await _bytes(request)))
    return Call(request.path_params, query, body)


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
