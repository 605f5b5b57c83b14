"""The paths of MCP, whose library needs as much memory as everything else, and is loaded on first use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import import_module

from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agent_farm.server.auth import MCP_PATH, MESSAGES_PATH, SSE_PATH
from agent_farm.sessions.running_butlers import RunningButlers


class McpPaths:
    """The application behind these paths; the first caller waits until it is loaded."""

    def __init__(self, butlers: RunningButlers) -> None:
        self._butlers = butlers
        self._wanted = asyncio.Event()
        self._speaker: asyncio.Future[ASGIApp] = asyncio.Future()

    @property
    def routes(self) -> list[BaseRoute]:
        return [Route(path, self) for path in (MCP_PATH, SSE_PATH, f"{MESSAGES_PATH}/{{rest:path}}")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._wanted.set()
        speak = await asyncio.shield(self._speaker)
        await speak(scope, receive, send)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._speak())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _speak(self) -> None:
        """Runs in one task, because the library has to end in the task in which it began."""
        await self._wanted.wait()
        try:
            door = await asyncio.to_thread(import_module, "agent_farm.server.mcp_door")
            async with door.speaking(self._butlers) as app:
                self._speaker.set_result(app)
                await asyncio.Event().wait()
        except Exception as error:
            if self._speaker.done():
                raise
            self._speaker.set_exception(error)
