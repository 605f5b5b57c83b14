"""The server's one application: /mcp, /sse, /run for `af run` and `af trigger`, /healthz, and the page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from agent_farm.butler.mcp_server import build_mcp_server
from agent_farm.butler.tool_box import text_of
from agent_farm.errors import AgentFarmError
from agent_farm.server.activity import Activity
from agent_farm.server.answers import refuse
from agent_farm.server.auth import Auth, caller_of
from agent_farm.sessions.order import Progress
from agent_farm.sessions.result import refused
from agent_farm.sessions.run_request import RunRequest
from agent_farm.sessions.service import ButlerService

if TYPE_CHECKING:
    from agent_farm.server.page_routes import Page

MOST_BYTES = 16 * 1024 * 1024
# Auth has looked at Host and Origin already, for every route alike.
_GUARDED = TransportSecuritySettings(enable_dns_rebinding_protection=False)

Event = dict[str, Any]


def build_app(service: ButlerService, page: Page | None = None, activity: Activity | None = None) -> ASGIApp:
    """The server's one application: MCP, sessions and, for the farm's own butler, the page."""
    server = build_mcp_server(service)
    # As event streams: the headers of an answer come at once, and pings after them, however long a tool
    # takes. Without, gemini gives up on it after a minute.
    mcp = server.streamable_http_app(
        stateless_http=True,
        json_response=False,
        transport_security=_GUARDED,
        max_request_body_size=MOST_BYTES,
    )
    sse = server.sse_app(transport_security=_GUARDED, max_request_body_size=MOST_BYTES)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with mcp.router.lifespan_context(mcp):
            yield
        if page:
            page.close()

    async def healthz(request: Request) -> JSONResponse:
        return JSONResponse({"butler": service.butler.name, "accepting": service.spawner.admission.accepting})

    async def run(request: Request) -> StreamingResponse | JSONResponse:
        caller = caller_of(request.scope)
        if caller is None or caller.kind != "architect":
            return JSONResponse({"error": "only for the architect"}, status_code=403)
        try:
            asked = RunRequest.from_json(await request.json())
        except (ValueError, KeyError, TypeError) as error:
            return JSONResponse({"error": f"not a request to run: {error}"}, status_code=400)
        return StreamingResponse(_events(service, asked), media_type="application/x-ndjson")

    routes = [
        Route("/healthz", healthz),
        Route("/run", run, methods=["POST"]),
        *sse.routes,
        *mcp.routes,
        *(page.routes if page else ()),
    ]
    app = Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={404: _say_not_found, 405: _say_not_found}
    )
    return Auth(app, service.tokens, page.logins if page else None, activity or Activity())


async def _say_not_found(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    what = "There is nothing here" if status == 404 else f"{request.method} is not for this address"
    response = refuse(status, "not-found" if status == 404 else "method", what, hint="GET /api/openapi.json")
    response.headers.update(getattr(error, "headers", None) or {})
    return response


async def _events(service: ButlerService, request: RunRequest) -> AsyncIterator[bytes]:
    """One JSON object a line: queued, running, tool, …, at last `result` or `error`."""
    queue: asyncio.Queue[Event] = asyncio.Queue()
    task = asyncio.create_task(_trigger(service, request, queue))
    try:
        while True:
            event = await queue.get()
            yield json.dumps(event).encode() + b"\n"
            if event["event"] in ("result", "error"):
                return
    finally:
        if request.attached and not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _trigger(service: ButlerService, request: RunRequest, queue: asyncio.Queue[Event]) -> None:
    def observe(progress: Progress) -> None:
        queue.put_nowait({"event": progress.event, "session_id": progress.session_id, **progress.detail})

    try:
        result = await service.run(request, observe)
    except AgentFarmError as error:
        queue.put_nowait(_error_event(error))
        return
    except Exception as error:
        queue.put_nowait({"event": "result", "result": refused(str(error)).to_json()})
        raise
    queue.put_nowait({"event": "result", "result": result.to_json()})


def _error_event(error: AgentFarmError) -> Event:
    return {
        "event": "error",
        "code": error.code,
        "exit_code": error.exit_code,
        "what": error.what,
        "why": error.why,
        "evidence": list(error.evidence),
        "hint": error.hint,
        "text": text_of(error),
    }
