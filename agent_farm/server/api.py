"""The HTTP door: `GET /api/<verb>` for what reads, `POST` for what changes, with the verb's JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping
from contextlib import suppress
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from agent_farm.errors import UsageError
from agent_farm.operations.operation import Operation, document, part_document
from agent_farm.operations.requests import list_fields, read_request
from agent_farm.server.answering import Heard, Tell, answer_to, context_for
from agent_farm.server.answers import answer_error, body_of, encode, expected, refuse
from agent_farm.server.auth import caller_of
from agent_farm.server.client import LINES
from agent_farm.sessions.running_butlers import RunningButlers

MOST_BYTES = 8 * 1024 * 1024


def route_of(operation: Operation[Any, Any], butlers: RunningButlers) -> Route:
    async def endpoint(request: Request) -> Response:
        return await _respond(operation, butlers, request)

    methods = ["GET"] if operation.effect == "reads" else ["POST"]
    return Route(f"/api/{operation.name}", endpoint, methods=methods, name=operation.name)


async def _respond(operation: Operation[Any, Any], butlers: RunningButlers, request: Request) -> Response:
    caller = caller_of(request.scope)
    assert caller is not None, "Auth lets nobody in whom it does not know"

    async def answered(
        asked: Any, tell: Tell = lambda text: None, heard: Heard | None = None
    ) -> dict[str, Any]:
        context = context_for(butlers, caller, tell, whole_ids=True)(operation)
        return document(await answer_to(operation, context, asked, heard))

    try:
        data = await body_of(request, MOST_BYTES)
        if data is None:
            return refuse(413, "too-large", f"The body is larger than {MOST_BYTES} bytes")
        asked = _read(operation, request, data)
        if LINES in request.headers.get("accept", ""):
            lines = _lines(operation.name, lambda tell, heard: answered(asked, tell, heard))
            return StreamingResponse(lines, media_type=LINES)
        return Response(encode(await answered(asked)), media_type="application/json")
    except Exception as error:
        return answer_error(expected(error, operation.name))


async def _lines(
    verb: str, answered: Callable[[Tell, Heard], Coroutine[Any, Any, dict[str, Any]]]
) -> AsyncIterator[bytes]:
    """One JSON object per line: progress, each part of an answer in parts, and finally the answer or the
    error. If the client goes away, the operation is cancelled if possible.
    """
    loop = asyncio.get_running_loop()
    told: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()

    def tell(text: str) -> None:
        loop.call_soon_threadsafe(told.put_nowait, {"told": text})

    def heard(part: Any) -> None:
        loop.call_soon_threadsafe(told.put_nowait, {"part": part_document(part)})

    work = asyncio.create_task(answered(tell, heard))
    work.add_done_callback(lambda task: loop.call_soon(told.put_nowait, None))
    try:
        while (line := await told.get()) is not None:
            yield encode(line) + b"\n"
        yield encode(await work) + b"\n"
    except Exception as error:
        yield encode({"version": 1, "error": expected(error, verb).document}) + b"\n"
    finally:
        work.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await work


def _read(operation: Operation[Any, Any], request: Request, data: bytes) -> Any:
    if operation.effect == "reads":
        return read_request(operation, _query(request, list_fields(operation.request)), lax=True)
    document = _parsed(data)
    if not isinstance(document, dict):
        raise UsageError("The body must be a JSON object")
    return read_request(operation, document)


def _query(request: Request, lists: Collection[str]) -> dict[str, Any]:
    """`ids=a&ids=b` is a list, and so is a single value if the field is a list."""
    found: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        found.setdefault(name, []).append(value)
    return {name: values if name in lists else values[-1] for name, values in found.items()}


def _parsed(data: bytes) -> object:
    if not data:
        return {}
    try:
        return msgspec.json.decode(data)  # refuses lone surrogates and numbers that are not finite
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UsageError("The body is not JSON", why=str(error)) from error
