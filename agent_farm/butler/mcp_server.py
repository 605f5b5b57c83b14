"""The MCP door: which tools there are, who may call which, and what is recorded of each call."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp_types import CallToolResult, ListToolsResult, TextContent

from agent_farm.butler.desk import Desk, open_desk
from agent_farm.butler.farm_tools import add_farm_tools
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
from agent_farm.sessions.order import Progress as SessionProgress
from agent_farm.sessions.service import ButlerService
from agent_farm.sessions.tool_calls import ServedCall, record_served_call

INSTRUCTIONS = (
    "The server of an agent-farm. Builders: report how you are; ask_architect instead of waiting. "
    "Sessions: state_get and state_set keep facts, trigger starts another session."
)
ARCHITECT_INSTRUCTIONS = (
    "You are the architect of an agent-farm: spawn builders, wait for them, see their status, screen and "
    "diff, send them messages, merge what is done, stop and prune those whose work has landed. "
    "trigger runs a headless session; state_*, schedule_* and sessions_* are the farm's butler's."
)


def build_mcp_server(service: ButlerService) -> MCPServer[Any]:
    """The server that sessions, builders and the architect reach over HTTP."""
    from agent_farm import __version__
    from agent_farm.farm.farm import open_farm

    server: MCPServer[Any] = MCPServer(
        service.name,
        version=__version__,
        instructions=INSTRUCTIONS,
        log_level="WARNING",
        middleware=[
            _Permissions(),
            _Recording(service),
            Progress(),
            Words(),
            _Table(lambda: open_farm(service.root)),
            ToolsTold(lambda: open_farm(service.root)),
        ],
    )
    _add_tools(server, lambda: service, lambda: open_farm(service.root))
    return server


def build_architect_server(open_farm: Callable[[], Farm]) -> MCPServer[Any]:
    """What `af mcp` serves over stdio: the tools that the architect's token is good for over HTTP."""
    from agent_farm import __version__

    server: MCPServer[Any] = MCPServer(
        "agent-farm",
        version=__version__,
        instructions=ARCHITECT_INSTRUCTIONS,
        log_level="WARNING",
        middleware=[_Permissions(), Progress(), Words(), _Table(open_farm)],
    )

    @cache
    def desk() -> Desk:
        return open_desk(open_farm().root)

    _add_tools(server, desk, open_farm)
    return server


def _add_tools(server: MCPServer[Any], open_desk: Callable[[], Desk], open_farm: Callable[[], Farm]) -> None:
    """All there are; which of them a caller may use is the token's to say."""
    add_session_tools(server, open_desk)
    add_state_tools(server, open_desk)
    add_schedule_tools(server, open_desk)
    add_farm_tools(server, open_farm)
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

    def __init__(self, service: ButlerService) -> None:
        self._service = service

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
        await record_served_call(self._service.database, caller.id, call, seconds)
        self._service.tell(SessionProgress(caller.id, "tool", {"name": call.name, "failed": failed}))


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
