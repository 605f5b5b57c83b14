"""The dashboard as people get it: `af dash`, served by the farm's own server beside /mcp."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Af
from tests.server.serving import ARCHITECT, serving
from tests.sessions.loop import in_loop
from tests.waiting import wait_until


@pytest.fixture
def address(shop: Path, af: Af) -> Iterator[str]:
    done = af("dash", "--no-browser", "--json")
    assert done.returncode == 0, done.stderr
    yield str(json.loads(done.stdout)["address"])
    af("butler", "stop", "--now")


def ask(
    port: int, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, Any, dict[str, str]]:
    connection = http.client.HTTPConnection("localhost", port, timeout=120)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        data = response.read()
        return (
            response.status,
            json.loads(data) if data.startswith(b"{") else data,
            dict(response.getheaders()),
        )
    finally:
        connection.close()


def port_of(address: str) -> int:
    return int(address.split(":")[2].split("/")[0])


def log_in(address: str) -> dict[str, str]:
    port, ticket = port_of(address), address.partition("#")[2]
    origin = f"http://localhost:{port}"
    status, answer, _ = ask(port, "POST", "/api/login", {"ticket": ticket}, Origin=origin)
    assert status == 200
    return {"Authorization": f"Bearer {answer['login']}", "Origin": origin}


def test_it_is_served_beside_the_butler(address: str, af: Af, shop: Path) -> None:
    port = port_of(address)
    own = log_in(address)
    assert ask(port, "GET", "/api/status", **own)[1]["builders"] == []
    assert ask(port, "GET", "/healthz")[0] == 200
    assert ask(port, "POST", "/mcp", {}, **own)[0] == 401  # the page's login opens no tool
    assert ask(port, "GET", "/sse", **own)[0] == 401
    token = (shop / ".agent-farm/architect.token").read_text().strip()
    assert ask(port, "GET", "/api/status", Authorization=f"Bearer {token}")[0] == 200
    log = (shop / ".agent-farm/butler.log").read_text()
    assert address.partition("#")[2] not in log
    assert token not in log


def test_only_loopback_is_bound(address: str) -> None:
    port = port_of(address)
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), port)} - {
        "127.0.0.1",
        "127.0.1.1",
        "::1",
    }
    for other in others:
        with pytest.raises(OSError), socket.create_connection((str(other), port), timeout=2):
            pass


def test_a_session_is_triggered_from_the_page(address: str) -> None:
    port, own = port_of(address), log_in(address)
    body = {"prompt": "[[say:from the page]]", "runtime": "demo", "wait": False}
    status, answer, _ = ask(port, "POST", "/api/trigger", body, **own)
    assert status == 200, answer

    def ended() -> Any:
        found = ask(port, "GET", f"/api/sessions_get?session_id={answer['session_id']}", **own)[1]["session"]
        return found if found["state"] not in ("queued", "running") else None

    session = wait_until(ended, what="the session to end")
    assert (session["state"], session["trigger_source"]) == ("completed", "external")
    assert "from the page" in session["output"]
    status, answer, _ = ask(port, "POST", "/api/trigger", {"prompt": "x", "runtime": "nope"}, **own)
    assert (status, answer["error"]["what"]) == (400, "No runtime nope")
    assert ask(port, "GET", "/api/usage", **own)[1]["buckets"][-1]["sessions"] == 1


def test_the_server_ends_quickly_with_a_page_open(address: str, af: Af) -> None:
    port, own = port_of(address), log_in(address)
    connection = http.client.HTTPConnection("localhost", port, timeout=120)
    connection.request("GET", "/api/events", headers=own)
    response = connection.getresponse()
    while not response.readline().startswith(b"event: snapshot"):
        pass
    began = time.monotonic()
    assert af("butler", "stop").returncode == 0
    assert time.monotonic() - began < 20
    connection.close()


def test_a_login_outlives_the_server(address: str, af: Af) -> None:
    own = log_in(address)
    assert af("butler", "stop").returncode == 0
    again = json.loads(af("dash", "--json").stdout)["address"]
    assert port_of(again) == port_of(address)
    assert ask(port_of(again), "GET", "/api/status", **own)[0] == 200


@in_loop
async def test_what_the_page_holds_ends_with_the_server(shop: Path) -> None:
    def threads() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name.startswith("live")]

    async with serving(shop) as served:
        own = {"Authorization": f"Bearer {ARCHITECT}"}
        async with served.http.stream("GET", served.url("/api/events"), headers=own) as events:
            async for line in events.aiter_lines():
                if line.startswith("event: snapshot"):
                    break
        assert threads()
    await asyncio.to_thread(wait_until, lambda: not threads(), timeout=60, what="its threads to end")
