"""The page, the API it uses, the live events and the terminals: what the farm's server shows a browser."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

from agent_farm import __version__
from agent_farm.farm.farm import Farm
from agent_farm.live.feed import Live
from agent_farm.operations.table import offered
from agent_farm.paths import FarmPaths
from agent_farm.server.answers import encode
from agent_farm.server.api import route_of
from agent_farm.server.event_streams import serve_events, server_sent
from agent_farm.server.login_pages import LoginPages
from agent_farm.server.login_routes import login_routes
from agent_farm.server.logins import Logins
from agent_farm.server.openapi import describe
from agent_farm.server.terminal import Terminals
from agent_farm.sessions.running_butlers import RunningButlers

STATIC = Path(__file__).with_name("page")
VENDOR = STATIC / "vendor"


def farm_facts(farm: Farm) -> dict[str, Any]:
    """`terminal`: xterm, or screen where this installation was made without npm."""
    return {
        "name": farm.paths.name,
        "root": str(farm.root),
        "version": __version__,
        "terminal": "xterm" if (VENDOR / "xterm.mjs").is_file() else "screen",
    }


@dataclass(frozen=True, slots=True)
class Page:
    """What the server adds to its own routes, the logins it lets in, and what has to be closed with it."""

    routes: list[BaseRoute]
    logins: Logins
    parts: tuple[Live, Terminals]

    def close(self) -> None:
        for part in self.parts:
            part.close()


def open_page(butlers: RunningButlers) -> Page:
    root, paths = butlers.root, FarmPaths(butlers.root)
    logins = Logins(paths.state / "dashboard-logins.json")
    live, terminals = Live(root, farm_facts), Terminals(root)
    entry = login_routes(logins, LoginPages(paths.state / "dashboard-login"))
    return Page([*entry, *_routes(butlers, live, terminals)], logins, (live, terminals))


def _routes(butlers: RunningButlers, live: Live, terminals: Terminals) -> list[BaseRoute]:
    verbs = tuple(offered("http", "architect"))

    async def events(request: Request) -> Response:
        return StreamingResponse(server_sent(live.stream()), media_type="text/event-stream")

    async def events_socket(socket: WebSocket) -> None:
        await serve_events(live.stream(), socket)

    async def openapi(request: Request) -> Response:
        return Response(encode(await asyncio.to_thread(describe, verbs)), media_type="application/json")

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
    """Checked again on each use, so that a page is never of two versions."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response
