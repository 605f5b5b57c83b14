"""Adding a tool: what a user can cause becomes the tool's error text, not a traceback in the log."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from agent_farm.errors import AgentFarmError

P = ParamSpec("P")
R = TypeVar("R")


def tool(server: MCPServer[Any]) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
    def add(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        @functools.wraps(function)
        async def answer(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return await function(*args, **kwargs)
            except AgentFarmError as error:
                raise ToolError(text_of(error)) from error

        server.add_tool(answer)
        return answer

    return add


_AT_ONCE = 8


@functools.cache
def _threads(kind: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix=f"tool {kind}")


async def in_thread(kind: str, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """On a thread for calls of this kind: those that take long hold up their own kind and no other."""
    work = functools.partial(function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_threads(kind), work)


def text_of(error: AgentFarmError) -> str:
    """What, why, evidence and the next command, as `af` prints them."""
    lines = [error.what, *([error.why] if error.why else []), *error.evidence]
    return "\n".join([*lines, *([f"hint: {error.hint}"] if error.hint else [])])
