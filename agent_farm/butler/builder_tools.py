"""MCP tools for builders: report, ask, see the others, write to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

from agent_farm.builders.record import BuilderRecord
from agent_farm.butler import messages
from agent_farm.butler.farm_tools import send_text
from agent_farm.butler.tool_box import in_thread, tool
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import list_builders as list_all
from agent_farm.server.auth import caller_in

OpenFarm = Callable[[], Farm]
Reported = Literal["working", "waiting", "idle"]


def add_builder_tools(server: MCPServer[Any], open_farm: OpenFarm) -> None:
    @tool(server)
    async def report(state: Reported, message: str, ctx: Context[Any, Any]) -> dict[str, str]:
        """Tell the architect how you are: `state` is working, waiting or idle, `message` says why."""

        def work(farm: Farm, me: BuilderRecord) -> None:
            messages.report(farm, me, state, message)

        await _as_builder(open_farm, ctx, work)
        return {"state": state}

    @tool(server)
    async def ask_architect(question: str, ctx: Context[Any, Any]) -> dict[str, str]:
        """Ask the architect. Returns at once; end your turn, the answer comes as your next message."""

        def work(farm: Farm, me: BuilderRecord) -> None:
            messages.ask_architect(farm, me, question)

        await _as_builder(open_farm, ctx, work)
        return {"asked": question, "next": "End your turn now. The answer arrives as a message."}

    @tool(server)
    async def list_builders() -> dict[str, Any]:
        """The builders of this farm: id, what each works on, how it is."""
        return {"builders": await in_thread("look", _summaries, open_farm)}

    @tool(server)
    async def message_builder(id: str, text: str, ctx: Context[Any, Any]) -> dict[str, Any]:
        """Type a message into another builder's session; `outcome` is submitted, held or failed."""
        caller = caller_in(ctx.request_context)
        signed = f"Message from builder {caller.id}: {text}" if caller.kind == "builder" else text
        return await in_thread("send", send_text, open_farm, id, signed)


async def _as_builder(
    open_farm: OpenFarm, ctx: Context[Any, Any], work: Callable[[Farm, BuilderRecord], None]
) -> None:
    caller = caller_in(ctx.request_context)

    def say() -> None:
        farm = open_farm()
        work(farm, farm.require_exact(caller.id))

    await in_thread("report", say)


def _summaries(open_farm: OpenFarm) -> list[dict[str, Any]]:
    return [
        {
            "id": builder.record.id,
            "type": builder.record.type,
            "task": builder.record.title,
            "branch": builder.record.branch,
            "runtime": builder.record.runtime,
            "state": builder.status.state,
            "reason": builder.status.reason,
        }
        for builder in list_all(open_farm(), with_git=False)
    ]
