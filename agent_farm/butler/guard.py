"""Before anything else sees a request: loopback names only, no foreign page, a token that is good."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from agent_farm.butler.requests import set_caller
from agent_farm.butler.telemetry import continued
from agent_farm.butler.tokens import Caller, Tokens, hash_token

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
OPEN_PATHS = ("/healthz",)
SSE_PATH, MESSAGES_PATH, MCP_PATH = "/sse", "/messages/", "/mcp"


class Guard:
    """ASGI middleware. A refusal is in no log: anybody on the machine could write there what he likes."""

    def __init__(self, app: ASGIApp, tokens: Tokens, touch: Callable[[], None] = lambda: None) -> None:
        self._app = app
        self._tokens = tokens
        self._touch = touch
        self._streams: dict[str, list[Caller]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        self._touch()
        headers, path = Headers(scope=scope), str(scope["path"])
        refusal = _foreign(headers)
        if refusal is None and path in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        token = _bearer(headers)
        caller = self._caller(token, scope, path) if refusal is None and token else None
        if refusal is None and caller is None:
            refusal = (401, "no token" if not token else "the token is not good for this session")
        if refusal is None and path == MCP_PATH and scope["method"] != "POST":
            refusal = (405, "this server is stateless: only POST")  # no stream, no session to delete
        if refusal is not None:
            await self._refuse(scope, receive, send, *refusal)
            return
        assert caller is not None
        assert token is not None
        set_caller(scope, caller)
        with continued(headers.get("traceparent")):
            await self._pass(scope, receive, send, caller, hash_token(token), path)

    async def _pass(
        self, scope: Scope, receive: Receive, send: Send, caller: Caller, token_hash: str, path: str
    ) -> None:
        """An SSE client names itself on its stream alone; its messages are known by the token they carry."""
        if path != SSE_PATH:
            await self._app(scope, receive, send)
            return
        open_streams = self._streams.setdefault(token_hash, [])
        open_streams.append(caller)
        try:
            await self._app(scope, receive, send)
        finally:
            open_streams.remove(caller)
            if not open_streams:
                with suppress(KeyError):
                    del self._streams[token_hash]

    def _caller(self, token: str, scope: Scope, path: str) -> Caller | None:
        query = parse_qs(scope["query_string"].decode("latin-1"))
        named = query.get("runtime_session_id", [None])[-1]
        if path.startswith(MESSAGES_PATH) and named is None:
            streams = self._streams.get(hash_token(token))
            return streams[-1] if streams else None
        return self._tokens.caller(token, named)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, status: int, reason: str) -> None:
        extra = {401: {"WWW-Authenticate": "Bearer"}, 405: {"Allow": "POST"}}.get(status, {})
        await JSONResponse({"error": reason}, status_code=status, headers=extra)(scope, receive, send)


def _foreign(headers: Headers) -> tuple[int, str] | None:
    """A name that is not loopback's is DNS rebinding, an origin that is not is somebody's web page."""
    host = headers.get("host", "")
    if not _is_loopback(host):
        return 421, f"the host {host!r} is not loopback"
    origin = headers.get("origin")
    if origin is not None and not _is_loopback_origin(origin):
        return 403, f"the origin {origin!r} is not loopback"
    return None


def _is_loopback(host: str) -> bool:
    return _without_port(host) in LOOPBACK


def _is_loopback_origin(origin: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and _is_loopback(parts.netloc)


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _bearer(headers: Headers) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None
