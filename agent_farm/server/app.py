"""The server's one application: /mcp, /sse, what the command line asks of it (/run, /stop), and the page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from agent_farm.butler.mcp_server import build_mcp_server
from agent_farm.server.activity import Activity
from agent_farm.server.answers import refuse
from agent_farm.server.auth import HEALTH_PATH, Auth
from agent_farm.server.session_routes import session_routes
from agent_farm.sessions.running import RunningButler

if TYPE_CHECKING:
    from agent_farm.server.page_routes import Page

MOST_BYTES = 16 * 1024 * 1024
# Auth has looked at Host and Origin already, for every route alike.
_GUARDED = TransportSecuritySettings(enable_dns_rebinding_protection=False)


def build_app(running: RunningButler, page: Page | None = None, activity: Activity | None = None) -> ASGIApp:
    """Without a page for a butler that is not the farm's own."""
    server = build_mcp_server(running)
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

    async def say_health(request: Request) -> JSONResponse:
        return JSONResponse({"butler": running.name, "accepting": running.spawner.queue.accepting})

    routes = [
        Route(HEALTH_PATH, say_health),
        *session_routes(running),
        *sse.routes,
        *mcp.routes,
        *(page.routes if page else ()),
    ]
    app = Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={404: _say_not_found, 405: _say_not_found}
    )
    return Auth(app, running.tokens, page.logins if page else None, activity or Activity())


async def _say_not_found(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    what = "There is nothing here" if status == 404 else f"{request.method} is not for this address"
    response = refuse(status, "not-found" if status == 404 else "method", what, hint="GET /api/openapi.json")
    response.headers.update(getattr(error, "headers", None) or {})
    return response
