"""The server's one application: /mcp and /sse, the API, and the page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from agent_farm.server.answers import refuse
from agent_farm.server.auth import HEALTH_PATH, Auth
from agent_farm.server.idle import Activity
from agent_farm.server.mcp_paths import McpPaths
from agent_farm.server.page_routes import open_page
from agent_farm.sessions.running_butlers import RunningButlers


def build_app(butlers: RunningButlers, activity: Activity | None = None) -> ASGIApp:
    mcp, page = McpPaths(butlers), open_page(butlers)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with mcp.open():
            yield
        page.close()

    async def say_health(request: Request) -> JSONResponse:
        return JSONResponse({"butler": butlers.own.name, "accepting": butlers.accepting})

    app = Starlette(
        routes=[Route(HEALTH_PATH, say_health), *mcp.routes, *page.routes],
        lifespan=lifespan,
        exception_handlers={404: _say_not_found, 405: _say_not_found},
    )
    return Auth(app, butlers.tokens, page.logins, activity or Activity())


async def _say_not_found(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    what = "There is nothing here" if status == 404 else f"{request.method} is not for this address"
    response = refuse(status, "not-found" if status == 404 else "method", what, hint="GET /api/openapi.json")
    response.headers.update(getattr(error, "headers", None) or {})
    return response
