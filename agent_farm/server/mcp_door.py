"""The MCP door: which tools a caller sees, which ones it may call, and what is recorded of each call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import ASGIApp

from agent_farm import __version__
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import open_farm
from agent_farm.farm.own_events import note
from agent_farm.pane.journal import TOOLS_TOLD
from agent_farm.runtimes.result import ToolCall
from agent_farm.server.answering import Tell, context_for
from agent_farm.server.auth import MESSAGES_PATH, SSE_PATH, caller_in
from agent_farm.server.callers import Caller
from agent_farm.server.tools import as_utf8, call_tool, tools_for
from agent_farm.sessions.running_butlers import RunningButlers
from agent_farm.sessions.session import Progress
from agent_farm.sessions.tool_calls import record_served_call

MOST_BYTES = 16 * 1024 * 1024
PROGRESS_SECONDS = 5.0
_MOST_NOTES = 50
INSTRUCTIONS = (
    "The server of an agent-farm. Architects: spawn builders, wait for them, see their status, screen and "
    "diff, send them messages, merge what is done, stop and prune those whose work has landed; trigger runs "
    "a headless session. Builders: report how you are; ask_architect instead of waiting. "
    "Sessions: state_get and state_set keep facts, trigger starts another session."
)
# Auth has already checked Host and Origin, for every route.
_GUARDED = TransportSecuritySettings(enable_dns_rebinding_protection=False)

RequestContext = ServerRequestContext[Any, Request]
T = TypeVar("T")


def _mcp_server(butlers: RunningButlers) -> Server[Any]:
    """Serves sessions, builders and the architect; `af mcp` passes messages on to it."""

    async def list_tools(asked: RequestContext, params: PaginatedRequestParams | None) -> ListToolsResult:
        caller = caller_in(asked)
        if caller.kind == "builder":
            await asyncio.to_thread(_note_told, butlers, caller.id)
        return ListToolsResult(tools=tools_for(caller.kind))

    async def call(asked: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        caller, began = caller_in(asked), time.monotonic()
        arguments = params.arguments or {}
        told: list[str] = []
        async with _telling(asked, params.name) as tell:

            def hear(text: str) -> None:
                told.append(text)
                tell(text)

            result = await call_tool(params.name, arguments, caller, context_for(butlers, caller, hear))
        if caller.kind == "session":
            await _record(butlers, caller, params.name, arguments, result, time.monotonic() - began)
        hears = (asked.meta or {}).get("progress_token") is not None
        wants = caller.kind == "architect" and not hears  # programs of a session only read the answer
        return _with_notes(result, told) if told and wants else result

    return Server(
        butlers.own.name,
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call,
        # the conformance suite asks every server for these
        on_list_resources=_always(ListResourcesResult(resources=[])),
        on_list_resource_templates=_always(ListResourceTemplatesResult(resource_templates=[])),
        on_list_prompts=_always(ListPromptsResult(prompts=[])),
    )


def _always(answer: T) -> Callable[[RequestContext, PaginatedRequestParams | None], Awaitable[T]]:
    async def give(asked: RequestContext, params: PaginatedRequestParams | None) -> T:
        return answer

    return give


@asynccontextmanager
async def _telling(asked: RequestContext, name: str) -> AsyncIterator[Tell]:
    """A client that asked for it gets progress messages, and every few seconds a sign that the call is still
    running.
    """
    loop, began = asyncio.get_running_loop(), time.monotonic()
    told: asyncio.Queue[str] = asyncio.Queue()

    async def report() -> None:
        while True:
            try:
                # In Python 3.11, wait_for forgets that it was cancelled if a message has just arrived.
                async with asyncio.timeout(PROGRESS_SECONDS):
                    text = await told.get()
            except TimeoutError:
                text = f"{name}: running for {time.monotonic() - began:.0f} s"
            await asked.session.report_progress(time.monotonic() - began, None, as_utf8(text))

    def tell(text: str) -> None:
        loop.call_soon_threadsafe(told.put_nowait, text)

    reporting = asyncio.create_task(report())
    try:
        yield tell
    finally:
        reporting.cancel()
        await asyncio.wait([reporting])


def _with_notes(result: CallToolResult, told: Sequence[str]) -> CallToolResult:
    """Append the messages to the answer, for a client that gets no progress."""
    notes = TextContent(type="text", text="\n".join(["notes:", *told[-_MOST_NOTES:]]))
    return result.model_copy(update={"content": [*result.content, notes]})


async def _record(
    butlers: RunningButlers,
    caller: Caller,
    name: str,
    arguments: Mapping[str, Any],
    result: CallToolResult,
    seconds: float,
) -> None:
    """Record every call of a session that was served, under the session's id."""
    texts = [part.text for part in result.content if isinstance(part, TextContent)]
    call = ToolCall(name, dict(arguments), "\n".join(texts), bool(result.is_error))
    await record_served_call(butlers.database, caller.id, call, seconds)
    butlers.tell(Progress(caller.id, "tool", {"name": name, "failed": call.is_error}))


def _note_told(butlers: RunningButlers, builder: str) -> None:
    """Record in the builder's journal that it has seen its tools: a first prompt may wait for that."""
    with suppress(AgentFarmError):  # its record is gone by now
        farm = open_farm(butlers.root)
        note(farm, farm.require_exact(builder), TOOLS_TOLD, "the server announced its tools")


@asynccontextmanager
async def speaking(butlers: RunningButlers) -> AsyncIterator[ASGIApp]:
    """The application behind MCP's paths."""
    server = _mcp_server(butlers)
    app = Router(_mcp_routes(server))
    async with server.session_manager.run():
        yield app


def _mcp_routes(server: Server[Any]) -> list[BaseRoute]:
    """As event streams, so that an answer's headers come at once, followed by pings however long a tool
    takes: otherwise some clients give up after a minute."""
    mcp = server.streamable_http_app(
        stateless_http=True,
        json_response=False,
        transport_security=_GUARDED,
        max_request_body_size=MOST_BYTES,
    )
    sse = SseServerTransport(
        f"{MESSAGES_PATH}/", security_settings=_GUARDED, max_request_body_size=MOST_BYTES
    )

    async def stream(request: Request) -> Response:
        async with sse.connect_sse(request.scope, request.receive, request._send) as (read, write):
            await server.run(read, write, server.create_initialization_options())
        return Response()

    return [
        Route(SSE_PATH, stream),
        Mount(f"{MESSAGES_PATH}/", app=sse.handle_post_message),
        *mcp.routes,
    ]
