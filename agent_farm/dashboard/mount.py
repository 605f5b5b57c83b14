"""The dashboard beside another server's routes: theirs stay theirs, everything else is the dashboard's."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

BUTLER_PATHS = ("/mcp", "/sse", "/messages", "/run", "/healthz")


def beside(butler: ASGIApp, dashboard: Starlette) -> ASGIApp:
    """One application of two, with one life."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            async with dashboard.router.lifespan_context(dashboard):
                await butler(scope, receive, send)
            return
        await (butler if is_butlers(str(scope["path"])) else dashboard)(scope, receive, send)

    return app


def is_butlers(path: str) -> bool:
    return any(path == own or path.startswith(f"{own}/") for own in BUTLER_PATHS)
