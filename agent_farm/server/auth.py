"""Checks every request first: its Host must be this machine, no foreign page may ask, the caller is known.

A page elsewhere in the browser, a name that somebody pointed at 127.0.0.1, and another user's program all
reach a loopback port. Behind it are terminals, which run whatever is typed: so nothing is answered unless
Host, Origin and token are right. The browser never sends a page's login by itself: a cookie would go to every
port of the machine, whereas a page on another port cannot read what this one stores.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_farm.server.answers import refuse
from agent_farm.server.callers import Caller, Tokens
from agent_farm.server.connections import vouch
from agent_farm.server.idle import Activity
from agent_farm.server.tokens import hash_token
from agent_farm.server.variables import SHELL_HEADER, told_shell
from agent_farm.sessions.telemetry import continued

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_farm.server.logins import Logins

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
PROTOCOL = "agent-farm"  # of the page's WebSockets, which can send no header but their protocols
MCP_PATH, SSE_PATH, MESSAGES_PATH, HEALTH_PATH = "/mcp", "/sse", "/messages", "/healthz"

# Addresses for programs, which send a token with each request; all others belong to the page.
_PROGRAMS = (MCP_PATH, SSE_PATH, MESSAGES_PATH, HEALTH_PATH)
_OPEN = (HEALTH_PATH, "/", "/login", "/favicon.ico", "/api/login", "/api/session")
_OPEN_BELOW = "/static/"
_LOGIN_PROTOCOL = "login."
_SAFE_METHODS = ("GET", "HEAD")
_OWN_SITES = ("same-origin", "none")
_POLICY_VIOLATION = 4403
_CODES = {400: "usage", 401: "login", 403: "foreign", 405: "method", 421: "host"}
_CALLER = "agent_farm.caller"

Refusal = tuple[int, str]


def caller_of(scope: Mapping[str, Any]) -> Caller | None:
    """Who asks; None at the few addresses that are open to everybody on this machine."""
    caller = scope.get(_CALLER)
    return caller if isinstance(caller, Caller) else None


def caller_in(context: Any) -> Caller:
    """The caller of an MCP request."""
    request = getattr(context, "request", None)
    caller = caller_of(request.scope) if request is not None else None
    if caller is None:
        raise PermissionError("a request reached a tool without a caller")
    return caller


class Auth:
    """ASGI middleware around the whole server.

    Refusals are not logged, because anybody could then write to the log.
    """

    def __init__(self, app: ASGIApp, tokens: Tokens, logins: Logins, activity: Activity) -> None:
        self._app = app
        self._tokens = tokens
        self._logins = logins
        self._activity = activity
        self._streams: dict[str, list[Caller]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await self._answer_refusal(scope, receive, send, refusal)
            return
        caller, send = caller_of(scope), _with_headers(send, headers.get("host", ""))
        if caller is None:
            await self._app(scope, receive, send)
            return
        vouch(scope)
        trace = continued(headers.get("traceparent"))
        with self._activity.request(), self._stream(scope, headers, caller), trace:
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> Refusal | None:
        """None if the request may pass; its caller is then in the scope."""
        path, host = str(scope["path"]), headers.get("host", "")
        if _without_port(host) not in LOOPBACK:
            return 421, "the Host is not this machine's loopback name"
        token = _token(scope, headers)
        is_programs = _is_below(path, _PROGRAMS)
        if is_programs and (scope["type"] == "websocket" or _is_foreign_to_loopback(headers)):
            return 403, "the Origin is not loopback"
        if not is_programs and (foreign := _foreign(scope, headers, host, has_token=token is not None)):
            return 403, foreign
        try:
            caller = self._caller(scope, path, token, is_programs) if token else None
            if caller and caller.kind == "architect" and (told := headers.get(SHELL_HEADER)):
                caller = replace(caller, shell=told_shell(told))
        except ValueError:
            return 400, f"{SHELL_HEADER} is malformed"
        if caller is not None:
            scope[_CALLER] = caller
        elif not (path in _OPEN or path.startswith(_OPEN_BELOW)) or (is_programs and path != HEALTH_PATH):
            return 401, "the token is not good" if token else "not logged in"
        if path == MCP_PATH and scope["method"] != "POST":
            return 405, "this server is stateless: only POST"  # there is no stream, and no session to delete
        return None

    def _caller(self, scope: Scope, path: str, token: str, is_programs: bool) -> Caller | None:
        """Programs identify themselves; the page's addresses are only for the architect."""
        if not is_programs:
            if self._logins.is_good(token, listening_port(scope)):
                return Caller("architect", "page", login=token)
            return self._tokens.caller(token, None)
        named = parse_qs(scope["query_string"].decode("latin-1")).get("runtime_session_id", [None])[-1]
        if _is_below(path, (MESSAGES_PATH,)) and named is None:
            streams = self._streams.get(hash_token(token))
            return streams[-1] if streams else None
        return self._tokens.caller(token, named)

    @contextmanager
    def _stream(self, scope: Scope, headers: Headers, caller: Caller) -> Iterator[None]:
        """An SSE client only identifies itself on its stream; its messages are recognised by their token."""
        if scope["path"] != SSE_PATH:
            yield
            return
        key = hash_token(_token(scope, headers) or "")
        self._streams.setdefault(key, []).append(caller)
        try:
            yield
        finally:
            self._streams[key].remove(caller)
            if not self._streams[key]:
                del self._streams[key]

    async def _answer_refusal(self, scope: Scope, receive: Receive, send: Send, refusal: Refusal) -> None:
        status, reason = refusal
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": reason})
            return
        response = self._refusal_response(scope, status, reason)
        await response(scope, receive, _with_headers(send, ""))

    def _refusal_response(self, scope: Scope, status: int, reason: str) -> Response:
        path = str(scope["path"])
        is_page = not path.startswith("/api/") and not _is_below(path, _PROGRAMS)
        if status == 401 and is_page and scope["method"] in _SAFE_METHODS:
            return RedirectResponse("/login", 303)
        response = refuse(status, _CODES[status], f"Refused: {reason}", hint="af dash")
        response.headers.update({401: {"WWW-Authenticate": "Bearer"}, 405: {"Allow": "POST"}}.get(status, {}))
        return response


def listening_port(scope: Scope) -> int | None:
    """The port that the server listens on, whatever Host the browser sends."""
    server = scope.get("server")
    return server[1] if server else None


def chosen_protocol(scope: Scope) -> str | None:
    """The protocol with which a WebSocket is accepted: never the one that contains the login."""
    return PROTOCOL if PROTOCOL in scope.get("subprotocols", ()) else None


def _foreign(scope: Scope, headers: Headers, host: str, *, has_token: bool) -> str | None:
    """Why it counts as another page's request, or None: browsers name the page if something may change."""
    origin = headers.get("origin")
    if origin is not None and not _is_own(origin, host):
        return "the Origin is not this page's"
    safe = scope["type"] == "http" and scope["method"] in _SAFE_METHODS
    if origin is None and not safe and not has_token:
        return "no Origin"
    site = headers.get("sec-fetch-site")
    is_link = safe and headers.get("sec-fetch-mode") == "navigate" and not scope["path"].startswith("/api/")
    if site is not None and site not in _OWN_SITES and not is_link:
        return "the request comes from another site"
    return None


def _is_own(origin: str, host: str) -> bool:
    return origin in (f"http://{host}", f"https://{host}")


def _is_foreign_to_loopback(headers: Headers) -> bool:
    """A program may also be a page on this machine, like MCP's inspector, if it has a token."""
    origin = headers.get("origin")
    if origin is None:
        return False
    try:
        parts = urlsplit(origin)
    except ValueError:
        return True
    return parts.scheme not in ("http", "https") or _without_port(parts.netloc) not in LOOPBACK


def _is_below(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _token(scope: Scope, headers: Headers) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    for protocol in scope.get("subprotocols", ()):
        if protocol.startswith(_LOGIN_PROTOCOL):
            return str(protocol.removeprefix(_LOGIN_PROTOCOL))
    return None


def _with_headers(send: Send, host: str) -> Send:
    """Nothing from elsewhere is loaded, nothing inline runs, and no other page may frame or read this one."""
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        f"connect-src 'self'{f' ws://{host}' if host else ''}; manifest-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Content-Security-Policy"] = policy
            headers["X-Content-Type-Options"] = "nosniff"
            headers["Referrer-Policy"] = "no-referrer"
            headers["Cross-Origin-Opener-Policy"] = "same-origin"
            headers["Cross-Origin-Resource-Policy"] = "same-origin"
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sending
