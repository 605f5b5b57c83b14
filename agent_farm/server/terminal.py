"""A builder's terminal over a WebSocket: `tmux attach` on a pseudo-terminal for each viewer.

To the browser: binary frames with terminal output, text frames with JSON (`attached`, `ended`).
From it: text frames with JSON: `input` (only if typing was requested) and `resize`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from starlette.websockets import WebSocket, WebSocketDisconnect

from agent_farm.errors import AgentFarmError, NotFound
from agent_farm.farm.farm import open_farm
from agent_farm.farm.panes import require_pane
from agent_farm.fleet.book import Book, read_book
from agent_farm.fleet.calling import terminal_argv
from agent_farm.server.auth import chosen_protocol
from agent_farm.server.event_streams import first_of
from agent_farm.server.pty_client import PtyClient, start_on_pty
from agent_farm.tmux.tmux_process import clean_environment
from agent_farm.tmux.viewing import TERM, client_size, give_back_size, viewer_argv, window_size

P = ParamSpec("P")
T = TypeVar("T")

_THREADS = 4
_LEAST, _MOST = 10, 500
_NO_TERMINAL, _BAD_MESSAGE = 4404, 4400


@dataclass(frozen=True, slots=True)
class Attachment:
    """A viewer's client of a session: `before` is the size of the window without it, the rest is its own."""

    socket: str | None
    session: str
    before: tuple[int, int] | None
    argv: tuple[str, ...]
    ignores_size: bool
    columns: int
    rows: int


@dataclass(slots=True)
class PaneSizes:
    """Restores a pane's size when its last viewer leaves: a phone must not leave it at 52 columns."""

    _viewers: dict[tuple[str | None, str], int] = field(default_factory=dict)
    _before: dict[tuple[str | None, str], tuple[int, int] | None] = field(default_factory=dict)

    def enter(self, one: Attachment) -> None:
        key = (one.socket, one.session)
        self._viewers[key] = self._viewers.get(key, 0) + 1
        self._before.setdefault(key, one.before)

    def leave(self, one: Attachment) -> tuple[int, int] | None:
        """The size to restore, if this was the last viewer."""
        key = (one.socket, one.session)
        self._viewers[key] -= 1
        if self._viewers[key]:
            return None
        del self._viewers[key]
        return self._before.pop(key)


@dataclass(slots=True)
class Terminals:
    """All open terminals; whatever asks tmux or the registry runs on their threads."""

    root: Path
    _sizes: PaneSizes = field(default_factory=PaneSizes)
    _threads: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, _THREADS, "terminal"))

    async def serve(self, socket: WebSocket) -> None:
        await socket.accept(chosen_protocol(socket.scope))
        typing = socket.query_params.get("typing") == "true"
        size = _size(socket.query_params)
        try:
            found = await self._run(_attachment, self.root, socket.path_params["id"], typing, size)
        except AgentFarmError as error:
            await _end(socket, error)
            return
        self._sizes.enter(found)
        client = start_on_pty(found.argv, _environment(), columns=found.columns, rows=found.rows)
        try:
            await socket.send_json(
                {
                    "type": "attached",
                    "typing": typing,
                    "fixed": found.ignores_size,
                    "columns": found.columns,
                    "rows": found.rows,
                }
            )
            await _bridge(socket, client, typing=typing, resizes=not found.ignores_size)
        finally:
            await asyncio.shield(self._leave(client, found))

    async def _leave(self, client: PtyClient, found: Attachment) -> None:
        await client.close()
        size = self._sizes.leave(found)
        if size is not None:
            with suppress(AgentFarmError):  # a session that is gone needs no size
                await self._run(give_back_size, found.socket, found.session, size)

    async def _run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(function, *args, **kwargs))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


async def _bridge(socket: WebSocket, client: PtyClient, *, typing: bool, resizes: bool) -> None:
    """Until either side ends."""
    into = _listen(socket, client, typing=typing, resizes=resizes)
    async with first_of(_show(socket, client), into) as ended:
        if ended:
            with suppress(RuntimeError, WebSocketDisconnect):
                await socket.send_json({"type": "ended", "reason": "the terminal was closed"})
                await socket.close()


async def _show(socket: WebSocket, client: PtyClient) -> None:
    while data := await client.read():
        await socket.send_bytes(data)


async def _listen(socket: WebSocket, client: PtyClient, *, typing: bool, resizes: bool) -> None:
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
        match _parsed(message.get("text")):
            case {"type": "input", "data": str(data)}:
                if typing:  # tmux, too, keeps a read-only viewer from typing
                    await client.write(data.encode("utf-8", "replace"))
            case {"type": "resize", "columns": int(columns), "rows": int(rows)}:
                if resizes:
                    client.resize(_bounded(columns), _bounded(rows))
            case _:
                await socket.close(_BAD_MESSAGE)
                return


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text or "")
    except (ValueError, RecursionError):
        return None


def _attachment(root: Path, id: str, typing: bool, wished: tuple[int, int]) -> Attachment:
    """A viewer does not change the size at which somebody else works. Only a full id names a builder."""
    farm = open_farm(root)
    records = farm.records()
    if id not in records and farm.paths.fleet.exists():
        return _elsewhere(read_book(farm), id, typing, wished)
    if id not in records:
        raise NotFound(f"No builder {id}", hint="af status")
    server, pane = require_pane(records[id])
    ignores_size = not typing and pane.attached > 0
    argv = viewer_argv(server.socket, pane.session_id, read_only=not typing, ignores_size=ignores_size)
    size = client_size(server.socket, pane.session_id) if ignores_size else None
    before = window_size(server.socket, pane.session_id)
    return Attachment(server.socket, pane.session_id, before, argv, ignores_size, *(size or wished))


def _elsewhere(book: Book, id: str, typing: bool, wished: tuple[int, int]) -> Attachment:
    """A terminal through the builder's machine, which also restores the pane's size."""
    if id not in book.builders:
        raise NotFound(f"No builder {id}", hint="af status")
    host = book.builders[id].host
    words = ("attach", "--viewer", *(() if typing else ("--read-only",)))
    argv = tuple(terminal_argv(book, host, *words, id=id))
    return Attachment(f"fleet {host}", id, None, argv, False, *wished)


def _environment() -> dict[str, str]:
    env = clean_environment(os.environ)
    env.pop("TMUX", None)
    return env | {"TERM": TERM, "COLORTERM": "truecolor"}


def _size(query: Mapping[str, str]) -> tuple[int, int]:
    def number(name: str, default: int) -> int:
        word = query.get(name, "")
        return _bounded(int(word)) if word.isdecimal() and len(word) < 6 else default

    return number("columns", 80), number("rows", 24)


def _bounded(value: int) -> int:
    return max(_LEAST, min(_MOST, value))


async def _end(socket: WebSocket, error: AgentFarmError) -> None:
    ended = {"type": "ended", "reason": error.what, "why": error.why, "hint": error.hint}
    with suppress(RuntimeError, WebSocketDisconnect):
        await socket.send_json(ended)
        await socket.close(_NO_TERMINAL)
