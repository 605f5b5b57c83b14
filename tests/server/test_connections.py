"""Connections that ask nothing, or only half, are few and end; those that ask are served all the while."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from agent_farm.server import connections
from tests.server.serving import serving
from tests.sessions.loop import in_loop

HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


@in_loop
async def test_who_never_asks_or_asks_half_is_let_go(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.5)
    async with serving(repo) as served:
        for sent in (b"", HALF, HALF + b"Content-Length: 5\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(sent)
            with suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 45) == b""
            writer.close()


@in_loop
async def test_of_those_that_wait_the_oldest_make_room(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_UNASKED", 10)
    async with serving(repo) as served:
        idle = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(40)]
        with suppress(ConnectionError):
            assert await asyncio.wait_for(idle[0][0].read(), 45) == b""
        assert (await served.http.get(served.url("/healthz"))).status_code == 200
        reader, writer = idle[-1]  # the newest may still ask, and a second time on the same connection
        for _ in range(2):
            writer.write(HALF + b"\r\n")
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 45)
            assert head.startswith(b"HTTP/1.1 200")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
        for _, writer in idle:
            writer.close()
