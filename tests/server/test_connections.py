"""Connections that ask nothing, or only half, are few and end; those that ask are served all the while."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from agent_farm.server import connections
from tests.server.serving import ARCHITECT, Served, serving
from tests.sessions.loop import in_loop

HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
LOGIN = (
    b"POST /api/login HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nContent-Length: 9000\r\n\r\n"
)
STYLE = b"GET /static/css/base.css HTTP/1.1\r\nHost: localhost\r\n\r\n"
MANY = 1000  # of it are more than the kernel keeps for who does not read
KNOWN = (
    f"POST /api/state_list HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ARCHITECT}\r\n"
    "Content-Length: 2\r\n\r\n{"
).encode()
FLOOD = (
    "import socket, sys; port, number = map(int, sys.argv[1:]); kept = []\n"
    "for _ in range(number): kept.append(socket.create_connection(('127.0.0.1', port)))"
)


async def drip(served: Served) -> None:
    """A body that comes byte by byte, until it is cut off."""
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(LOGIN)
    with suppress(ConnectionError):
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.05)
    writer.close()


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
    monkeypatch.setattr(connections, "MOST_STRANGERS", 10)
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


@in_loop
async def test_a_stranger_who_is_slow_is_let_go_and_a_known_caller_is_not(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "STRANGER_SECONDS", 0.5)
    async with serving(repo) as served, asyncio.timeout(45):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(KNOWN)
        deaf, wants = await asyncio.open_connection("127.0.0.1", served.port, limit=1024)
        wants.write(b"".join([STYLE] * MANY))
        await drip(served)
        with suppress(ConnectionError):
            assert (await deaf.read()).count(b"HTTP/1.1 200") < MANY
        writer.write(b"}")
        assert b" 405 " in await reader.readline()  # its whole body has been read
        for one in (writer, wants):
            one.close()


@in_loop
async def test_strangers_in_the_middle_of_a_request_make_room_too(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_STRANGERS", 10)
    async with serving(repo) as served, asyncio.timeout(45):
        halves = []
        for _ in range(12):
            halves.append(await asyncio.open_connection("127.0.0.1", served.port))
            halves[-1][1].write(LOGIN)
            assert (await served.http.get(served.url("/healthz"))).status_code == 200
        with suppress(ConnectionError):
            assert await halves[0][0].read() == b""
        for _, writer in halves:
            writer.close()


@in_loop
async def test_a_body_that_breaks_off_leaves_no_line_in_the_log(
    repo: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(repo) as served:
        for sent in (LOGIN, KNOWN):
            _, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(sent)
            assert (await served.http.get(served.url("/healthz"))).status_code == 200
            writer.close()
            await writer.wait_closed()
            assert (await served.http.get(served.url("/healthz"))).status_code == 200
    assert "disconnect" not in caplog.text.lower()


@in_loop
async def test_a_flood_leaves_files_for_the_server_to_open(
    repo: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with serving(repo) as served:
        most = len(os.listdir("/dev/fd")) + 600
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, before[0]), before[1]))
        try:
            argv = [sys.executable, "-c", FLOOD, str(served.port), "2000"]
            flood = await asyncio.to_thread(subprocess.run, argv, preexec_fn=lambda: unlimited(before))
            assert flood.returncode == 0
            assert (await served.http.get(served.url("/healthz"))).status_code == 200
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert "out of system resource" not in caplog.text


def unlimited(limits: tuple[int, int]) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
