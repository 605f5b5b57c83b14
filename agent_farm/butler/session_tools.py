"""MCP tools of the butler itself: sessions, state, schedules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

from agent_farm.butler.agreement import schedule_json
from agent_farm.butler.desk import Desk
from agent_farm.butler.identity import ScheduleEntry
from agent_farm.butler.order import RunOptions
from agent_farm.butler.requests import caller_in
from agent_farm.butler.result import SpawnerResult
from agent_farm.butler.tool_box import tool

OpenDesk = Callable[[], Desk]


def add_session_tools(server: MCPServer[Any], open_desk: OpenDesk) -> None:
    @tool(server)
    async def trigger(
        prompt: str, context: str | None = None, ctx: Context[Any, Any] | None = None
    ) -> SpawnerResult:
        """Run another session with `prompt`, `context` put before it, and wait for its result."""
        caller = caller_in(ctx.request_context if ctx else None)
        inside = caller.kind == "session"
        work = open_desk().trigger(
            prompt,
            context,
            trigger_source="trigger" if inside else "external",
            options=RunOptions(parent=caller.id if inside else None),
        )
        # It goes on when the client stops waiting: a client's time limit says nothing about the work.
        return await asyncio.shield(asyncio.ensure_future(work))

    @tool(server)
    async def sessions_list(limit: int = 20, state: str | None = None) -> dict[str, Any]:
        """The newest sessions, without their outputs; `state` is queued, running, completed, failed, …"""
        states = [state] if state else []
        desk, most = open_desk(), max(1, min(limit, 200))
        found = await desk.database.run(
            lambda: desk.sessions.find(butler=desk.name, states=states, limit=most)
        )
        return {"sessions": found}

    @tool(server)
    async def sessions_get(session_id: str, ctx: Context[Any, Any] | None = None) -> dict[str, Any]:
        """The whole record of one session, by id or a prefix of it."""
        desk = open_desk()
        # what another butler's sessions were told is for nobody but the architect
        butler = None if caller_in(ctx.request_context if ctx else None).kind == "architect" else desk.name
        return {"session": await desk.database.run(lambda: desk.sessions.get(session_id, butler=butler))}

    @tool(server)
    async def tick() -> dict[str, list[str]]:
        """Fire the schedules that are due now."""
        return {"fired": await open_desk().tick()}


def add_state_tools(server: MCPServer[Any], open_desk: OpenDesk) -> None:
    @tool(server)
    async def state_get(key: str) -> dict[str, Any]:
        """The value kept under `key`; null when there is none."""
        desk = open_desk()
        return {"key": key, "value": await desk.database.run(desk.state.get, key)}

    @tool(server)
    async def state_set(key: str, value: str) -> dict[str, Any]:
        """Keep `value` under `key` for later sessions."""
        desk = open_desk()
        await desk.database.run(desk.state.set, key, value)
        return {"key": key, "value": value}

    @tool(server)
    async def state_list(prefix: str = "") -> dict[str, Any]:
        """All keys that start with `prefix`, with their values."""
        desk = open_desk()
        return {"state": await desk.database.run(desk.state.items, prefix)}

    @tool(server)
    async def state_delete(key: str) -> dict[str, Any]:
        """Forget `key`; `deleted` says whether it was there."""
        desk = open_desk()
        return {"key": key, "deleted": await desk.database.run(desk.state.delete, key)}


def add_schedule_tools(server: MCPServer[Any], open_desk: OpenDesk) -> None:
    @tool(server)
    async def schedule_list() -> dict[str, Any]:
        """All schedules, with when each is due next (seconds since the epoch). It fires once agreed to."""
        desk = open_desk()
        found = await desk.database.run(desk.schedules.all)
        return {"schedules": [schedule_json(desk.root, desk.name, schedule) for schedule in found]}

    @tool(server)
    async def schedule_create(
        name: str, cron: str, prompt: str, timezone: str | None = None
    ) -> dict[str, Any]:
        """Run `prompt` whenever the five-field `cron` expression is due."""
        entry = ScheduleEntry(name, cron, prompt, timezone)
        desk = open_desk()
        return {"schedule": (await desk.database.run(desk.schedules.create, entry)).to_json()}

    @tool(server)
    async def schedule_update(
        name: str, cron: str | None = None, prompt: str | None = None, enabled: bool | None = None
    ) -> dict[str, Any]:
        """Change a schedule, or switch it on or off."""
        desk = open_desk()
        changed = await desk.database.run(
            lambda: desk.schedules.update(name, cron=cron, prompt=prompt, enabled=enabled)
        )
        return {"schedule": changed.to_json()}

    @tool(server)
    async def schedule_delete(name: str) -> dict[str, Any]:
        """Remove a schedule that a tool created."""
        desk = open_desk()
        await desk.database.run(desk.schedules.delete, name)
        return {"deleted": name}
