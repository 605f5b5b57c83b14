"""MCP tools of the butler itself: sessions, state, schedules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

from agent_farm.butler.desk import Desk
from agent_farm.butler.tool_box import in_thread, tool
from agent_farm.errors import UsageError
from agent_farm.runtimes.base import Permissions
from agent_farm.server.auth import caller_in
from agent_farm.server.tokens import Caller
from agent_farm.sessions.agreement import schedule_json
from agent_farm.sessions.butlers import ScheduleEntry
from agent_farm.sessions.cron import CATCH_UP_SECONDS
from agent_farm.sessions.records import SessionState
from agent_farm.sessions.result import SpawnerResult
from agent_farm.sessions.run_request import RunRequest

OpenDesk = Callable[[], Desk]


def add_session_tools(server: MCPServer[Any], open_desk: OpenDesk) -> None:
    @tool(server)
    async def trigger(
        prompt: str,
        context: str | None = None,
        wait: bool = True,
        resume: str | None = None,
        max_turns: int = 20,
        model: str | None = None,
        runtime: str | None = None,
        permissions: Permissions | None = None,
        cwd: str | None = None,
        timeout: float | None = None,
        ctx: Context[Any, Any] | None = None,
    ) -> SpawnerResult:
        """Run another session with `prompt` and wait for its result, or with `wait` false start it.

        `runtime`, `permissions`, `cwd` and `timeout` are for the architect to choose. A session goes on by
        `resume` with those alone that it triggered itself.
        """
        caller, desk = caller_in(ctx.request_context if ctx else None), open_desk()
        inside = caller.kind == "session"
        request = RunRequest(
            prompt,
            context,
            max_turns,
            runtime,
            model,
            permissions,
            Path(cwd) if cwd else None,
            timeout,
            source="trigger" if inside and wait else "external",
            parent=caller.id if inside else None,
            resume=resume,
        )
        if inside:
            await _require_modest(desk, caller, request)
        if not wait:
            started = await desk.start(request)
            if isinstance(started, str):
                return SpawnerResult(session_id=started, state="queued")
            return started
        # It goes on when the client stops waiting: a client's time limit says nothing about the work.
        return await asyncio.shield(asyncio.ensure_future(desk.run(request)))

    @tool(server)
    async def sessions_list(limit: int = 20, state: SessionState | None = None) -> dict[str, Any]:
        """The newest sessions, each as a row: texts cut at 200 characters, tool calls as their number."""
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
    async def sessions_stop(session_id: str, ctx: Context[Any, Any] | None = None) -> dict[str, Any]:
        """End a session that waits or runs, with every process it started; a session ends its own alone."""
        caller, desk = caller_in(ctx.request_context if ctx else None), open_desk()
        if caller.kind == "session":
            await _require_own(desk, caller, session_id)
        by = "the architect" if caller.kind == "architect" else f"session {caller.id[:8]}"
        return {"session": await in_thread("stop session", desk.sessions.stop, session_id, by)}

    @tool(server)
    async def tick() -> dict[str, list[str]]:
        """Fire the schedules that are due now."""
        return {"fired": await open_desk().tick()}


def add_state_tools(server: MCPServer[Any], open_desk: OpenDesk) -> None:
    @tool(server)
    async def state_get(key: str) -> dict[str, Any]:
        """The value kept under `key` and its version; null and 0 when there is none."""
        desk = open_desk()
        value, version = await desk.database.run(desk.state.read, key)
        return {"key": key, "value": value, "version": version}

    @tool(server)
    async def state_set(key: str, value: Any, if_version: int | None = None) -> dict[str, Any]:
        """Keep `value` for later sessions; with `if_version` only if nobody has changed it since."""
        desk = open_desk()
        version = await desk.database.run(lambda: desk.state.set(key, value, if_version=if_version))
        return {"key": key, "value": value, "version": version}

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
        name: str,
        cron: str,
        prompt: str,
        timezone: str | None = None,
        cwd: str | None = None,
        late: float = CATCH_UP_SECONDS,
        until: str | None = None,
        ctx: Context[Any, Any] | None = None,
    ) -> dict[str, Any]:
        """Run `prompt` whenever the five-field `cron` expression is due."""
        _require_no_place(ctx, cwd)
        entry = ScheduleEntry(name, cron, prompt, timezone, cwd, late, until)
        desk = open_desk()
        return {"schedule": (await desk.database.run(desk.schedules.create, entry)).to_json()}

    @tool(server)
    async def schedule_update(
        name: str,
        cron: str | None = None,
        prompt: str | None = None,
        enabled: bool | None = None,
        late: float | None = None,
        until: str | None = None,
        ctx: Context[Any, Any] | None = None,
    ) -> dict[str, Any]:
        """Change a schedule, or switch it on or off."""
        desk = open_desk()
        if prompt is not None:
            _require_no_place(ctx, (await desk.database.run(desk.schedules.get, name)).cwd)
        changed = await desk.database.run(
            lambda: desk.schedules.update(
                name, cron=cron, prompt=prompt, enabled=enabled, late=late, until=until
            )
        )
        return {"schedule": changed.to_json()}

    @tool(server)
    async def schedule_delete(name: str) -> dict[str, Any]:
        """Remove a schedule that a tool created."""
        desk = open_desk()
        await desk.database.run(desk.schedules.delete, name)
        return {"deleted": name}


async def _require_modest(desk: Desk, caller: Caller, request: RunRequest) -> None:
    """A session gives another no more than it has: where and how it runs is not for it to choose."""
    chosen = (request.runtime, request.permissions, request.cwd, request.timeout)
    if any(value is not None for value in chosen):
        raise UsageError(
            "runtime, permissions, cwd and timeout are for the architect to choose",
            why="A session that could choose them would widen what it may do.",
        )
    if request.resume is not None:
        await _require_own(desk, caller, request.resume)


async def _require_own(desk: Desk, caller: Caller, session_id: str) -> None:
    record = await desk.database.run(lambda: desk.sessions.get(session_id, butler=desk.name))
    if record["parent"] != caller.id:
        raise UsageError(f"Session {session_id} is not one that this session triggered")


def _require_no_place(ctx: Context[Any, Any] | None, cwd: str | None) -> None:
    if cwd is not None and caller_in(ctx.request_context if ctx else None).kind != "architect":
        raise UsageError(
            "A schedule with a cwd is the architect's",
            why="A session that could write one would run where it may not itself.",
        )
