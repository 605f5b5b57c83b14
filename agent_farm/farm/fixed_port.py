"""Forwards one fixed port of this machine to the port of one builder at a time.

A dev server that only works on its own port (because of a login that returns there, or a cookie) runs in each
builder on `AF_PORT`. The process with the fixed port looks up the chosen builder for each connection. That
choice is in a file, so that another `af serve` can change it without a gap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from agent_farm.disk import file_lock, make_directory
from agent_farm.documents import load_if_whole, store
from agent_farm.errors import AgentFarmError, LockTaken
from agent_farm.farm.farm import Farm
from agent_farm.loopback import HOSTS, listen

_LOOK_SECONDS = 0.5
_CHUNK = 65536

Tell = Callable[[str], None]


class _Turn(Struct, frozen=True):
    builder: str


@dataclass(frozen=True, slots=True)
class FixedPort:
    farm: Farm
    port: int

    @property
    def _file(self) -> Path:
        return self.farm.paths.state / "serving" / f"{self.port}.json"

    @property
    def _lock(self) -> Path:
        return self.farm.paths.locks / f"serve-{self.port}.lock"

    def choose(self, id: str) -> None:
        """Forward to this builder from now on."""
        make_directory(self._file.parent)
        store(self._file, _Turn(id))

    def chosen(self) -> str | None:
        turn = load_if_whole(self._file, _Turn)
        return turn.builder if turn else None

    def target(self) -> tuple[str, int] | None:
        """The builder and its server's port; None if it is gone."""
        id = self.chosen()
        record = self.farm.registry.read().get(id) if id else None
        return (record.id, record.ports[0]) if record and record.ports else None

    def serve(self, tell: Tell) -> bool:
        """Runs until Ctrl-C; False if another process forwards this port already."""
        make_directory(self._lock.parent)
        try:
            with file_lock(self._lock, wait=0):
                asyncio.run(_Passing(self, tell).run())
        except LockTaken:
            return False
        return True


@dataclass(slots=True)
class _Passing:
    fixed: FixedPort
    tell: Tell
    _open: dict[asyncio.StreamWriter, str] = field(default_factory=dict)

    async def run(self) -> None:
        try:
            sockets = listen(self.fixed.port)
        except OSError as error:
            raise AgentFarmError(
                f"Port {self.fixed.port} cannot be taken",
                why=error.strerror or str(error),
                hint=f"ss -ltnp 'sport = :{self.fixed.port}'",
            ) from error
        async with AsyncExitStack() as serving:
            for one in sockets:
                await serving.enter_async_context(await asyncio.start_server(self._connected, sock=one))
            await self._watch()

    async def _watch(self) -> None:
        """Close connections to the last builder after a change, because a page must not talk to two."""
        before = None
        while True:
            target = self.fixed.target()
            if target != before:
                before = target
                where = f"{target[0]} (port {target[1]})" if target else "nobody: the builder is gone"
                self.tell(f"http://localhost:{self.fixed.port} goes to {where}")
                for writer, id in list(self._open.items()):
                    if target is None or id != target[0]:
                        writer.close()
            await asyncio.sleep(_LOOK_SECONDS)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = None
        with suppress(AgentFarmError):  # `_watch` reports it
            target = await asyncio.to_thread(self.fixed.target)
        there = await _connect(target[1]) if target else None
        if target is None or there is None:
            writer.write(_not_there(*target) if target else _not_there("The builder", 0))
            writer.close()
            return
        its_reader, its_writer = there
        self._open |= {writer: target[0], its_writer: target[0]}
        try:
            await asyncio.gather(_pass_on(reader, its_writer), _pass_on(its_reader, writer))
        finally:
            for one in (writer, its_writer):
                self._open.pop(one, None)
                one.close()


async def _connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    for _, host in HOSTS:
        with suppress(OSError):
            return await asyncio.open_connection(host, port)
    return None


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy to the end of one side's data; the other side may continue."""
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


def _not_there(id: str, port: int) -> bytes:
    text = f"{id} has no server on port {port} yet.\n"
    head = f"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
    return f"{head}Connection: close\r\n\r\n{text}".encode()
