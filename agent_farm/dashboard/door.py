"""The lock on the door: who may ask, from which page, under which name of this machine.

A page elsewhere in the browser, a name that somebody pointed at 127.0.0.1, and a program of another user
all reach a loopback port. A terminal behind it runs whatever is typed, so nothing is answered before Host,
Origin and login are right. The login is never sent by a browser of itself: a cookie would go to every port
of the machine, a page on another port cannot read what this one keeps.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_farm.dashboard.answers import refuse
from agent_farm.dashboard.logins import Logins

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
LOGIN_KEY = "agent_farm.login"
PROTOCOL = "agent-farm"  # of the page's WebSockets, which can carry no header but their protocols

_OPEN = ("/", "/login", "/favicon.ico", "/api/login", "/api/session")
_LOGIN_PROTOCOL = "login."
_OPEN_BELOW = "/static/"
_SAFE_METHODS = ("GET", "HEAD")
_OWN_SITES = ("same-origin", "none")
_POLICY_VIOLATION = 4403


class Door:
    """ASGI middleware around the whole dashboard."""

    def __init__(self, app: ASGIApp, logins: Logins) -> None:
        self._app = app
        self._logins = logins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is None:
            await self._app(scope, receive, _with_headers(send, headers.get("host", "")))
            return
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": refusal[1]})
            return
        await _response(scope, refusal)(scope, receive, _with_headers(send, ""))

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if _name_of(host) not in LOOPBACK:
            return 421, "the Host is not this machine's loopback name"
        token = _token(scope, headers)
        foreign = _foreign(scope, headers, host, has_token=token is not None)
        if foreign:
            return 403, foreign
        if token is not None and self._logins.is_good(token, listening_port(scope)):
            scope[LOGIN_KEY] = token
        path = str(scope["path"])
        if path in _OPEN or path.startswith(_OPEN_BELOW) or LOGIN_KEY in scope:
            return None
        if token is not None:
            return None if self._logins.is_architect(token) else (401, "the token is not good")
        return 401, "not logged in"


def _foreign(scope: Scope, headers: Headers, host: str, *, has_token: bool) -> str | None:
    """Whether another page asks. A browser always names the page it acts for when something can change."""
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
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc == host and not parts.path


def _name_of(host: str) -> str:
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


def listening_port(scope: Scope) -> int | None:
    """The one that is listened at, whatever the browser calls it."""
    server = scope.get("server")
    return server[1] if server else None


def chosen_protocol(scope: Scope) -> str | None:
    """What a WebSocket is accepted with: never the one that holds the login."""
    return PROTOCOL if PROTOCOL in scope.get("subprotocols", ()) else None


def _response(scope: Scope, refusal: tuple[int, str]) -> Response:
    status, reason = refusal
    if status == 401 and scope["method"] in _SAFE_METHODS and not scope["path"].startswith("/api/"):
        return RedirectResponse("/login", 303)
    code = {401: "login", 403: "foreign", 421: "host"}[status]
    response = refuse(status, code, f"Refused: {reason}", hint="af dash")
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _with_headers(send: Send, host: str) -> Send:
    """Nothing from elsewhere is loaded, nothing inline runs, no other page may frame or read this one."""
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
