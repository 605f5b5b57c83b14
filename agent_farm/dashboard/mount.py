"""The dashboard beside another server's routes: theirs stay theirs, everything else is the dashboard's."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

BUTLER_PATHS = ("/mcp", "/sse", "/messages", "/run", "/healthz")


def beside(butler: ASGIApp, dashboard: ASGIApp) -> ASGIApp:
    """One application of two; the butler's lifespan is the one that is run."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        theirs = scope["type"] == "lifespan" or is_butlers(str(scope["path"]))
        await (butler if theirs else dashboard)(scope, receive, send)

    return app


def is_butlers(path: str) -> bool:
    return any(path == own or path.startswith(f"{own}/") for own in BUTLER_PATHS)
