"""MCP tools of the butler itself: sessions, state, schedules."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

from agent_farm.butler.identity import ScheduleEntry
from agent_farm.butler.order import RunOptions
from agent_farm.butler.requests import caller_in
from agent_farm.butler.result import SpawnerResult
from agent_farm.butler.service import ButlerService
from agent_farm.butler.tool_box import tool


def add_session_tools(server: MCPServer[Any], service: ButlerService) -> None:
    database = service.database

    @tool(server)
    async def trigger(
        prompt: str, context: str | None = None, ctx: Context[Any, Any] | None = None
    ) -> SpawnerResult:
        """Run another session with `prompt`, `context` put before it, and wait for its result."""
        caller = caller_in(ctx.request_context if ctx else None)
        inside = caller.kind == "session"
        work = service.trigger(
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
        found = await database.run(
            lambda: service.sessions.find(
                butler=service.butler.name, states=states, limit=max(1, min(limit, 200))
            )
        )
        return {"sessions": found}

    @tool(server)
    async def sessions_get(session_id: str) -> dict[str, Any]:
        """The whole record of one session, by id or a prefix of it."""
        return {"session": await database.run(service.sessions.get, session_id)}

    @tool(server)
    async def tick() -> dict[str, list[str]]:
        """Fire the schedules that are due now."""
        return {"fired": await service.scheduler.tick()}


def add_state_tools(server: MCPServer[Any], service: ButlerService) -> None:
    database, store = service.database, service.state

    @tool(server)
    async def state_get(key: str) -> dict[str, Any]:
        """The value kept under `key`; null when there is none."""
        return {"key": key, "value": await database.run(store.get, key)}

    @tool(server)
    async def state_set(key: str, value: str) -> dict[str, Any]:
        """Keep `value` under `key` for later sessions."""
        await database.run(store.set, key, value)
        return {"key": key, "value": value}

    @tool(server)
    async def state_list(prefix: str = "") -> dict[str, Any]:
        """All keys that start with `prefix`, with their values."""
        return {"state": await database.run(store.items, prefix)}

    @tool(server)
    async def state_delete(key: str) -> dict[str, Any]:
        """Forget `key`; `deleted` says whether it was there."""
        return {"key": key, "deleted": await database.run(store.delete, key)}


def add_schedule_tools(server: MCPServer[Any], service: ButlerService) -> None:
    database, store = service.database, service.schedules

    @tool(server)
    async def schedule_list() -> dict[str, Any]:
        """All schedules, with when each is due next (seconds since the epoch)."""
        return {"schedules": [schedule.to_json() for schedule in await database.run(store.all)]}

    @tool(server)
    async def schedule_create(
        name: str, cron: str, prompt: str, timezone: str | None = None
    ) -> dict[str, Any]:
        """Run `prompt` whenever the five-field `cron` expression is due."""
        entry = ScheduleEntry(name, cron, prompt, timezone)
        return {"schedule": (await database.run(store.create, entry)).to_json()}

    @tool(server)
    async def schedule_update(
        name: str, cron: str | None = None, prompt: str | None = None, enabled: bool | None = None
    ) -> dict[str, Any]:
        """Change a schedule, or switch it on or off."""
        changed = await database.run(lambda: store.update(name, cron=cron, prompt=prompt, enabled=enabled))
        return {"schedule": changed.to_json()}

    @tool(server)
    async def schedule_delete(name: str) -> dict[str, Any]:
        """Remove a schedule that a tool created."""
        await database.run(store.delete, name)
        return {"deleted": name}
