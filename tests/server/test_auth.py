"""Who is let in: loopback names, loopback origins, and a token that is good for the session it names."""

from __future__ import annotations

import logging
import socket
from pathlib import Path

import pytest

from agent_farm.paths import FarmPaths
from agent_farm.server.tokens import mint_builder_token
from tests.server.serving import ARCHITECT, serving
from tests.sessions.loop import in_loop


@in_loop
async def test_refusals_are_answered_and_leave_no_line_in_the_log(
    repo: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runs = FarmPaths(repo).runs
    mine, other = mint_builder_token(runs, "task-a"), mint_builder_token(runs, "task-b")
    async with serving(repo) as served:
        session = served.tokens.mint_for_session("s-1")
        cases = [
            (None, None, {}, 401),
            ("wrong", None, {}, 401),
            (mine, None, {}, 401),
            (other, "task-a", {}, 401),
            (session, "s-2", {}, 401),
            (session, "task-a", {}, 401),
            (ARCHITECT, None, {"Host": "evil.example"}, 421),
            (ARCHITECT, None, {"Host": "localhost.evil.example:80"}, 421),
            (ARCHITECT, None, {"Origin": "https://evil.example"}, 403),
            (ARCHITECT, None, {"Origin": "null"}, 403),
            (ARCHITECT, None, {"Origin": "http://localhost.evil.example"}, 403),
        ]
        with caplog.at_level(logging.WARNING):
            for token, named, headers, status in cases:
                response = await served.rpc("ping", token=token, session=named, headers=headers)
                assert response.status_code == status, (token, named, headers, response.text)
            forged = served.url("/x%0a2026-01-01 00:00:00 INFO agent_farm.butler: forged%1b[31m")
            assert (await served.http.get(forged)).status_code == 303  # to the page's login
        assert caplog.records == []
        for token, named in ((ARCHITECT, None), (mine, "task-a"), (session, "s-1")):
            assert (await served.rpc("ping", token=token, session=named)).status_code == 200
        for origin in ("http://localhost:3000", "http://127.0.0.1", "http://[::1]:5"):
            assert (await served.rpc("ping", headers={"Origin": origin})).status_code == 200


@in_loop
async def test_every_route_but_health_needs_a_token(repo: Path) -> None:
    async with serving(repo) as served:
        for method, path in (
            ("GET", "/sse"),
            ("POST", "/messages/?session_id=0"),
            ("GET", "/api/sessions_list"),
            ("GET", "/api/x"),
        ):
            response = await served.http.request(method, served.url(path))
            assert response.status_code == 401, path
        health = await served.http.get(served.url("/healthz"))
        assert health.json() == {"butler": "health", "accepting": True}


@in_loop
async def test_the_api_is_the_architects_alone(repo: Path) -> None:
    async with serving(repo) as served:
        token = served.tokens.mint_for_session("s-1")
        url = served.url("/api/trigger", "s-1")
        body = {"prompt": "x"}
        response = await served.http.post(url, json=body, headers={"Authorization": f"Bearer {token}"})
        assert response.status_code == 401
        bad = await served.http.post(url, json={}, headers={"Authorization": f"Bearer {ARCHITECT}"})
        assert bad.status_code == 400


@in_loop
async def test_it_listens_on_loopback_alone_on_both_families(repo: Path) -> None:
    async with serving(repo) as served:
        for host in ("127.0.0.1", "[::1]", "localhost"):
            health = await served.http.get(f"http://{host}:{served.port}/healthz")
            assert health.status_code == 200
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; says which address would be used
            outside = probe.getsockname()[0]
        except OSError:
            pytest.skip("this machine has no other address")
        finally:
            probe.close()
        with pytest.raises(OSError), socket.create_connection((outside, served.port), timeout=2):
            pass
