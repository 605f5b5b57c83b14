"""Nobody but the architect's own page and programs gets in, however they ask."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from agent_farm.operations.table import load_all
from agent_farm.paths import FarmPaths
from agent_farm.server.tokens import mint_builder_token
from tests.conftest import Af
from tests.dashboard.stage import Answer, Dashboard, listening_at

NOBODY = {"Authorization": None}
READS = (
    *(f"/api/{verb.name}" for verb in load_all() if verb.effect == "reads"),
    "/api/sessions_list", "/api/schedule_list", "/api/events", "/api/openapi.json", "/api/nothing",
)  # fmt: skip


@pytest.mark.parametrize("path", READS)
def test_without_a_login_the_api_says_nothing(dashboard: Dashboard, path: str) -> None:
    for headers in (
        NOBODY,
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Basic YTpi"},
        NOBODY | {"Cookie": "af-repo=wrong"},
        NOBODY | {"Cookie": "=; ;;\x7f"},
    ):
        answer = dashboard.ask("GET", path, headers=headers)
        assert answer.status == 401
        assert answer.json["error"]["code"] == "login"


def test_without_a_login_other_addresses_lead_to_the_login(dashboard: Dashboard) -> None:
    answer = dashboard.ask("GET", "/builders", headers=NOBODY)
    assert (answer.status, answer.headers["location"]) == (303, "/login")
    assert dashboard.ask("GET", "/login", headers=NOBODY).status == 200


def test_nothing_changes_without_a_login(dashboard: Dashboard) -> None:
    own = NOBODY | {"Origin": dashboard.address}
    for verb in load_all():
        if verb.effect != "reads":
            assert dashboard.ask("POST", f"/api/{verb.name}", {}, headers=own).status == 401
    assert dashboard.ask("POST", "/api/tickets", {}, headers=own).status == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io:80", "", "evil@localhost", "0.0.0.0"]
)
def test_a_foreign_host_is_refused_even_with_the_token(dashboard: Dashboard, host: str) -> None:
    for path in ("/", "/login", "/static/js/app.js", "/api/status"):
        assert dashboard.ask("GET", path, headers={"Host": host}).status == 421


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://localhost",
        "http://localhost:1",
        "null",
        "file://",
        "http://[",
        "",
        "x",
    ],
)
def test_a_foreign_origin_is_refused_even_when_logged_in(dashboard: Dashboard, origin: str) -> None:
    page = dashboard.log_in() | {"Origin": origin}
    for method, path in (("GET", "/api/status"), ("POST", "/api/spawn"), ("POST", "/api/login")):
        answer = dashboard.ask(method, path, {} if method == "POST" else None, headers=page)
        assert answer.status == 403, (method, path)


def test_no_cookie_opens_anything(dashboard: Dashboard) -> None:
    """A browser sends cookies to every port of a host, and of its own accord."""
    token = dashboard.log_in()["Authorization"].partition(" ")[2]
    own = {"Authorization": None, "Origin": dashboard.address}
    for name in ("login", "agent-farm.login", "af-repo"):
        cookie = own | {"Cookie": f"{name}={token}"}
        assert dashboard.ask("GET", "/api/status", headers=cookie).status == 401


@pytest.mark.parametrize("named", ["", "?runtime_session_id=task-a"])
def test_a_builders_token_opens_neither_page_nor_sessions(
    dashboard: Dashboard, shop: Path, named: str
) -> None:
    token = mint_builder_token(FarmPaths(shop).runs, "task-a")
    shown = {"Authorization": f"Bearer {token}"}
    gets = ("/api/status", "/api/sessions_list")
    posts = ("/api/spawn", "/api/merge", "/api/tickets", "/run", "/stop")
    for method, path in [*(("GET", one) for one in gets), *(("POST", one) for one in posts)]:
        answer = dashboard.ask(method, path + named, {} if method == "POST" else None, headers=shown)
        assert answer.status in (401, 403), (method, path, answer.status)


def test_a_login_is_good_at_its_own_port_alone(dashboard: Dashboard, shop: Path) -> None:
    """Who took the port while the server did not run may have been shown it."""
    page = dashboard.log_in()
    assert dashboard.ask("GET", "/api/status", headers=page).status == 200
    before = dashboard.port
    dashboard.end()
    with listening_at(before):
        dashboard.start()
    assert dashboard.port != before
    moved = page | {"Origin": dashboard.address}
    assert dashboard.ask("GET", "/api/status", headers=moved).status == 401


def test_a_page_of_another_site_cannot_even_read(dashboard: Dashboard) -> None:
    page: dict[str, str | None] = {**dashboard.log_in(), "Origin": None}
    for site in ("cross-site", "same-site"):
        answer = dashboard.ask("GET", "/api/status", headers=page | {"Sec-Fetch-Site": site})
        assert answer.status == 403
    link = page | {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert dashboard.ask("GET", "/", headers=link).status == 200


def shake_hands(dashboard: Dashboard, headers: dict[str, str], path: str) -> bytes:
    """What the server answers to a WebSocket's opening request."""
    standard = {
        "Host": f"localhost:{dashboard.port}",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Version": "13",
    }
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in (standard | headers).items())]
    with socket.create_connection(("127.0.0.1", dashboard.port), timeout=120) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return connection.recv(4096).split(b"\r\n")[0]


def test_a_terminal_opens_to_the_own_page_alone(
    dashboard: Dashboard, spawn: Callable[..., str], af: Af
) -> None:
    id = spawn("--shell")
    path = f"/api/builders/{id}/terminal?typing=true"
    own = {"Origin": dashboard.address}
    login = dashboard.log_in()["Authorization"].partition(" ")[2]
    page = own | {"Sec-WebSocket-Protocol": f"agent-farm, login.{login}"}
    refused = b"HTTP/1.1 403 Forbidden"
    assert shake_hands(dashboard, {}, path) == refused
    assert shake_hands(dashboard, own, path) == refused
    assert shake_hands(dashboard, own | {"Sec-WebSocket-Protocol": "login.x"}, path) == refused
    assert shake_hands(dashboard, own | {"Cookie": f"login={login}"}, path) == refused
    assert shake_hands(dashboard, page | {"Origin": "https://evil.example"}, path) == refused
    assert shake_hands(dashboard, page | {"Origin": "http://localhost:1"}, path) == refused
    assert shake_hands(dashboard, page | {"Host": "evil.example"}, path) == refused
    assert shake_hands(dashboard, page | {"Sec-Fetch-Site": "cross-site"}, path) == refused
    assert shake_hands(dashboard, page, path) == b"HTTP/1.1 101 Switching Protocols"


def test_a_terminal_takes_only_messages_it_knows(
    dashboard: Dashboard, spawn: Callable[..., str], af: Af
) -> None:
    from websockets.asyncio.client import connect
    from websockets.exceptions import ConnectionClosed

    id = spawn("--shell")
    assert af("wait", id, "--timeout", "300").returncode == 0
    address = f"ws://localhost:{dashboard.port}/api/builders/{id}/terminal?columns=99999999&rows=-3"
    login = dashboard.log_in()["Authorization"].partition(" ")[2]

    async def say(message: str | bytes) -> int:
        async with connect(
            address,
            subprotocols=["agent-farm", f"login.{login}"],  # type: ignore[list-item]
            origin=dashboard.address,
            proxy=None,  # type: ignore[arg-type]
        ) as opened:
            await opened.send(message)
            with suppress(ConnectionClosed):
                async for _ in opened:
                    pass
            return int(opened.close_code or 0)

    for message in (
        "no json",
        "[" * 100000,
        b"\x00",
        '{"type":"resize","columns":"wide"}',
        '{"type":"quit"}',
    ):
        assert asyncio.run(asyncio.wait_for(say(message), 30)) == 4400


def test_a_viewers_keys_go_nowhere(dashboard: Dashboard, spawn: Callable[..., str], af: Af) -> None:
    """Not even to tmux, which would let a viewer detach."""
    from websockets.asyncio.client import connect

    id = spawn("--shell")
    assert af("wait", id, "--timeout", "300").returncode == 0
    address = f"ws://localhost:{dashboard.port}/api/builders/{id}/terminal"
    login = dashboard.log_in()["Authorization"].partition(" ")[2]

    async def look() -> list[str]:
        said: list[str] = []
        async with connect(
            address,
            subprotocols=["agent-farm", f"login.{login}"],  # type: ignore[list-item]
            origin=dashboard.address,  # type: ignore[arg-type]
            proxy=None,
        ) as opened:
            while not isinstance(await opened.recv(), bytes):
                pass  # tmux shows the pane
            for keys in ("\x02", "d", "touch made\r"):
                await opened.send(json.dumps({"type": "input", "data": keys}))
                for _ in range(10):  # keys that come at once are a paste to tmux
                    await (await opened.ping())
            with suppress(TimeoutError):
                while True:
                    message = await asyncio.wait_for(opened.recv(), 2)
                    if isinstance(message, str):
                        said.append(json.loads(message)["type"])
        return said

    assert "ended" not in asyncio.run(look())
    assert "touch made" not in dashboard.get(f"/api/capture?id={id}")["screen"]


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/%2e%2e/door.py",
        "/static//etc/passwd",
        "/static/js/../../../logins.py",
        "/static/",
        "/api/builders/..%2f..%2fregistry.json",
        "/api/logs?id=..%2f..%2f..%2fsrc",
        "/api/capture?id=../../../etc/passwd",
        "/api/prompt?id=%00",
        "/api/logs?id=%2e%2e",
        "/api/sessions_get?session_id=%00",
        "/api/restore/..%2f..%2f",
        "/api/removed?ids=..%2f..%2f",
        "/%2e%2e/%2e%2e/etc/passwd",
    ],
)
def test_paths_lead_nowhere_else(dashboard: Dashboard, path: str) -> None:
    answer: Answer = dashboard.ask("GET", path)
    assert answer.status in (400, 404, 405)
    assert b"import" not in answer.body
    assert b"root:" not in answer.body


def test_every_answer_forbids_what_the_page_does_not_need(dashboard: Dashboard) -> None:
    for path in ("/login", "/static/js/app.js", "/api/status", "/api/nothing", "/"):
        headers = dashboard.ask("GET", path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert f"connect-src 'self' ws://localhost:{dashboard.port};" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == ("no-cache" if "static" in path else "no-store")
        assert "access-control-allow-origin" not in headers


def test_tickets_are_good_once_and_for_programs_of_the_architect(dashboard: Dashboard) -> None:
    own = {"Authorization": None, "Origin": dashboard.address}
    ticket = dashboard.post("/api/tickets")["ticket"]
    assert dashboard.ask("POST", "/api/login", {"ticket": ticket}, headers=own).status == 200
    again = dashboard.ask("POST", "/api/login", {"ticket": ticket}, headers=own)
    assert (again.status, again.json["error"]["hint"]) == (401, "af dash")
    for body in ({}, {"ticket": None}, {"ticket": ["x"]}, [], {"ticket": "x" * 20000}):
        assert dashboard.ask("POST", "/api/login", body, headers=own).status == 401
    assert dashboard.ask("POST", "/api/tickets", {}, headers=dashboard.log_in()).status == 403


def test_logging_out_ends_the_login(dashboard: Dashboard) -> None:
    page = dashboard.log_in()
    assert dashboard.ask("GET", "/api/status", headers=page).status == 200
    assert dashboard.ask("POST", "/api/logout", {}, headers=page).status == 200
    assert dashboard.ask("GET", "/api/status", headers=page).status == 401


def test_no_secret_is_kept_or_logged(dashboard: Dashboard, shop: Path) -> None:
    secret = dashboard.log_in()["Authorization"].partition(" ")[2]
    kept = shop / ".agent-farm/dashboard-logins.json"
    assert secret not in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    dashboard.ask("GET", f"/api/status?ticket={secret}", headers={"Authorization": None, "Cookie": "x=y"})
    shake_hands(dashboard, {"Sec-WebSocket-Protocol": f"agent-farm, login.{secret}"}, "/api/events")
    log = dashboard.log.read_text()
    assert dashboard.token not in log
    assert f"login.{secret}" not in log


def test_an_old_ticket_and_an_old_login_are_good_no_more(tmp_path: Path) -> None:
    from agent_farm.server.logins import LOGIN_SECONDS, TICKET_SECONDS, Logins

    now = [1000.0]
    logins = Logins(tmp_path / "logins.json", lambda: now[0])
    ticket = logins.issue_ticket()
    now[0] += TICKET_SECONDS
    assert logins.redeem(ticket, 1) is None
    login = logins.redeem(logins.issue_ticket(), 1)
    assert login is not None
    assert Logins(logins.file, lambda: now[0]).is_good(login, 1)
    now[0] += LOGIN_SECONDS
    assert not logins.is_good(login, 1)
