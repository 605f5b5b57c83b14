"""The server's application: /mcp and /sse, the API, and the page with its live events and terminals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from agent_farm import __version__
from agent_farm.farm.farm import Farm
from agent_farm.live.feed import Live
from agent_farm.operations.table import offered
from agent_farm.paths import FarmPaths
from agent_farm.server.answers import encode, refuse
from agent_farm.server.api import route_of
from agent_farm.server.auth import HEALTH_PATH, Auth
from agent_farm.server.event_streams import serve_events, server_sent
from agent_farm.server.idle import Activity
from agent_farm.server.login_pages import LoginPages
from agent_farm.server.login_routes import login_routes
from agent_farm.server.logins import Logins
from agent_farm.server.mcp_paths import McpPaths
from agent_farm.server.openapi import describe
from agent_farm.server.terminal import Terminals
from agent_farm.sessions.running_butlers import RunningButlers

STATIC = Path(__file__).with_name("page")
VENDOR = STATIC / "vendor"


def build_app(butlers: RunningButlers, activity: Activity | None = None) -> ASGIApp:
    mcp, page = McpPaths(butlers), _open_page(butlers)

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


def farm_facts(farm: Farm) -> dict[str, Any]:
    """`terminal`: xterm, or screen if this installation was built without npm."""
    return {
        "name": farm.paths.name,
        "root": str(farm.root),
        "version": __version__,
        "terminal": "xterm" if (VENDOR / "xterm.mjs").is_file() else "screen",
    }


@dataclass(frozen=True, slots=True)
class _Page:
    """What the server shows a browser: its routes, logins, and the parts that must be closed with it."""

    routes: list[BaseRoute]
    logins: Logins
    parts: tuple[Live, Terminals]

    def close(self) -> None:
        for part in self.parts:
            part.close()


def _open_page(butlers: RunningButlers) -> _Page:
    root, paths = butlers.root, FarmPaths(butlers.root)
    logins = Logins(paths.state / "dashboard-logins.json")
    live, terminals = Live(root, farm_facts), Terminals(root)
    entry = login_routes(logins, LoginPages(paths.state / "dashboard-login"))
    return _Page([*entry, *_routes(butlers, live, terminals)], logins, (live, terminals))


def _routes(butlers: RunningButlers, live: Live, terminals: Terminals) -> list[BaseRoute]:
    verbs = tuple(offered("http", "architect"))

    async def events(request: Request) -> Response:
        return StreamingResponse(server_sent(live.stream()), media_type="text/event-stream")

    async def events_socket(socket: WebSocket) -> None:
        await serve_events(live.stream(), socket)

    async def openapi(request: Request) -> Response:
        names = request.query_params.getlist("verb")
        asked = [verb for verb in verbs if verb.name in names] if names else verbs
        return Response(encode(await asyncio.to_thread(describe, asked)), media_type="application/json")

    return [
        Route("/", _page("index.html")),
        Route("/login", _page("login.html")),
        Route("/favicon.ico", _page("icon.svg")),
        Mount("/static", _Static(directory=STATIC)),
        Route("/api/openapi.json", openapi),
        Route("/api/events", events),
        WebSocketRoute("/api/events", events_socket),
        WebSocketRoute("/api/builders/{id}/terminal", terminals.serve),
        *(route_of(verb, butlers) for verb in verbs),
    ]


def _page(name: str) -> Callable[[Request], Any]:
    async def page(request: Request) -> Response:
        return FileResponse(STATIC / name)

    return page


class _Static(StaticFiles):
    """Files that the browser revalidates each time, so that a page never mixes two versions."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response
