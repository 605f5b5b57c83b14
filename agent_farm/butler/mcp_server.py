"""The MCP door: which tools there are, who may call which, and what is recorded of each call."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp_types import CallToolResult, ListToolsResult, TextContent

from agent_farm.butler.session_tools import add_schedule_tools, add_session_tools, add_state_tools
from agent_farm.butler.source_tools import add_source_tools
from agent_farm.butler.tool_answers import Progress, Words
from agent_farm.butler.tools_told import ToolsTold
from agent_farm.farm.farm import Farm
from agent_farm.operations.operation import Context, Operation
from agent_farm.operations.table import MODULES, may
from agent_farm.server.auth import caller_in
from agent_farm.server.tokens import Caller
from agent_farm.server.tools import call_tool, tools_for
from agent_farm.sessions.running import RunningButler
from agent_farm.sessions.session import Progress as SessionProgress
from agent_farm.sessions.tool_calls import ServedCall, record_served_call

INSTRUCTIONS = (
    "The server of an agent-farm. Architects: spawn builders, wait for them, see their status, screen and "
    "diff, send them messages, merge what is done, stop and prune those whose work has landed; trigger runs "
    "a headless session. Builders: report how you are; ask_architect instead of waiting. "
    "Sessions: state_get and state_set keep facts, trigger starts another session."
)


def build_mcp_server(running: RunningButler) -> MCPServer[Any]:
    """The server that sessions, builders and the architect reach; `af mcp` passes on to it what it hears."""
    from agent_farm import __version__
    from agent_farm.farm.farm import open_farm

    server: MCPServer[Any] = MCPServer(
        running.name,
        version=__version__,
        instructions=INSTRUCTIONS,
        log_level="WARNING",
        middleware=[
            _Permissions(),
            _Recording(running),
            Progress(),
            Words(),
            _Table(lambda: open_farm(running.root)),
            ToolsTold(lambda: open_farm(running.root)),
        ],
    )
    _add_tools(server, running, lambda: open_farm(running.root))
    return server


def _add_tools(server: MCPServer[Any], running: RunningButler, open_farm: Callable[[], Farm]) -> None:
    """All there are; which of them a caller may use is the token's to say."""
    add_session_tools(server, running)
    add_state_tools(server, running)
    add_schedule_tools(server, running)
    add_source_tools(server, open_farm)


class _Permissions:
    """A token is good for named tools; the others are neither listed nor run."""

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method == "tools/call":
            caller, name = caller_in(ctx), _tool_name(ctx.params)
            if not _may(caller, name):
                _logger().warning("Refused %s %s the tool %r", caller.kind, caller.id, name)
                article = "an" if caller.kind == "architect" else "a"
                return _error(f"{name!r} is not a tool for {article} {caller.kind}")
        result = await call_next(ctx)
        if ctx.method == "tools/list":
            return _listed_for(caller_in(ctx), result)
        return result


def _may(caller: Caller, name: str) -> bool:
    return caller.may(name) or may(caller.kind, name)


class _Table:
    """The tools that are derived from the table of operations."""

    def __init__(self, open_farm: Callable[[], Farm]) -> None:
        self._open_farm = open_farm

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        caller, name = caller_in(ctx), _tool_name(ctx.params)
        if ctx.method == "tools/call" and name in MODULES:

            def open_context(operation: Operation[Any, Any]) -> Context:
                farm = self._open_farm()
                if not operation.tolerant:
                    farm.settings.require_good()
                return Context(farm, caller.kind, caller.id)

            return await call_tool(name, (ctx.params or {}).get("arguments"), open_context)
        result = await call_next(ctx)
        if ctx.method == "tools/list" and isinstance(result, ListToolsResult):
            return result.model_copy(update={"tools": [*result.tools, *tools_for(caller.kind)]})
        if ctx.method == "tools/list" and isinstance(result, dict):
            derived = [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools_for(caller.kind)]
            return {**result, "tools": [*result["tools"], *derived]}
        return result


class _Recording:
    """Every served call of a session is kept under its id."""

    def __init__(self, running: RunningButler) -> None:
        self._running = running

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method != "tools/call":
            return await call_next(ctx)
        caller, began = caller_in(ctx), time.monotonic()
        result = await call_next(ctx)
        if caller.kind == "session":
            await self._record(caller, ctx.params or {}, result, time.monotonic() - began)
        return result

    async def _record(
        self, caller: Caller, params: Mapping[str, Any], result: HandlerResult, seconds: float
    ) -> None:
        text, failed = _outcome(result)
        call = ServedCall(_tool_name(params), dict(params.get("arguments") or {}), text, failed)
        await record_served_call(self._running.database, caller.id, call, seconds)
        self._running.tell(SessionProgress(caller.id, "tool", {"name": call.name, "failed": failed}))


def _tool_name(params: Mapping[str, Any] | None) -> str:
    return str((params or {}).get("name", ""))


def _outcome(result: HandlerResult) -> tuple[str | None, bool]:
    if isinstance(result, CallToolResult):
        texts = [part.text for part in result.content if isinstance(part, TextContent)]
        return "\n".join(texts), bool(result.is_error)
    if isinstance(result, dict):
        return json.dumps(result.get("content")), bool(result.get("isError"))
    return None, False


def _listed_for(caller: Caller, result: HandlerResult) -> HandlerResult:
    if isinstance(result, ListToolsResult):
        return result.model_copy(update={"tools": [tool for tool in result.tools if _may(caller, tool.name)]})
    if isinstance(result, dict) and "tools" in result:
        return {**result, "tools": [tool for tool in result["tools"] if _may(caller, tool["name"])]}
    return result


def _error(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def _logger() -> Any:
    import logging

    return logging.getLogger(__name__)
