"""Sends the live events: as server-sent events to programs, over a WebSocket to the page.

A browser opens six HTTP connections to a host, and a listening page would keep one of them for good.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from agent_farm.live.open_page import Message
from agent_farm.server.auth import chosen_protocol

_COME_AGAIN = 1012


async def server_sent(messages: AsyncGenerator[Message]) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    async with aclosing(messages):
        async for one in messages:
            if not one.event:
                yield b": ping\n\n"
            else:
                yield b"event: %s\nid: %d\ndata: %s\n\n" % (one.event.encode(), one.number, one.data)


async def serve_events(messages: AsyncGenerator[Message], socket: WebSocket) -> None:
    """Sends each message as `{"event", "number", "data"}` until either side ends."""
    await socket.accept(chosen_protocol(socket.scope))
    async with first_of(_tell(messages, socket), _until_left(socket)) as ended:
        if ended:
            with suppress(RuntimeError, WebSocketDisconnect):
                await socket.close(_COME_AGAIN)


@asynccontextmanager
async def first_of(out: Coroutine[Any, Any, None], into: Coroutine[Any, Any, None]) -> AsyncIterator[bool]:
    """Runs both until one has ended; yields whether that is `out`. Neither continues after the body."""
    tasks = asyncio.create_task(out), asyncio.create_task(into)
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        yield tasks[0] in done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _tell(messages: AsyncGenerator[Message], socket: WebSocket) -> None:
    async with aclosing(messages):
        async for one in messages:
            if not one.event:
                continue
            head = f'{{"event": "{one.event}", "number": {one.number}, "data": '
            await socket.send_text(f"{head}{one.data.decode()}}}")


async def _until_left(socket: WebSocket) -> None:
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
