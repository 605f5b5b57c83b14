"""MCP tools of the butler itself: sessions, state, schedules."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

from agent_farm.butler.tool_box import tool
from agent_farm.errors import UsageError
from agent_farm.runtimes.base import Permissions
from agent_farm.server.auth import caller_in
from agent_farm.server.other_butlers import start_as, stop_any
from agent_farm.server.tokens import Caller
from agent_farm.sessions.agreement import schedule_json
from agent_farm.sessions.butlers import ScheduleEntry
from agent_farm.sessions.cron import CATCH_UP_SECONDS
from agent_farm.sessions.running import RunningButler
from agent_farm.sessions.session import SessionRequest, SessionState, SpawnerResult


def add_session_tools(server: MCPServer[Any], running: RunningButler) -> None:
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
        caller = caller_in(ctx.request_context if ctx else None)
        inside = caller.kind == "session"
        request = SessionRequest(
            prompt=prompt,
            context=context,
            max_turns=max_turns,
            runtime=runtime,
            model=model,
            permissions=permissions,
            cwd=cwd or None,
            timeout=timeout,
            trigger_source="trigger" if inside and wait else "external",
            parent=caller.id if inside else None,
            resumes=resume,
        )
        if inside:
            await _require_modest(running, caller, request)
        if not wait:
            started = await start_as(running, None, request, caller.environ)
            if isinstance(started, str):
                return SpawnerResult(session_id=started, state="queued")
            return started
        # It goes on when the client stops waiting: a client's time limit says nothing about the work.
        return await asyncio.shield(asyncio.ensure_future(running.run(request, caller.environ)))

    @tool(server)
    async def sessions_list(limit: int = 20, state: SessionState | None = None) -> dict[str, Any]:
        """The newest sessions, each as a row: texts cut at 200 characters, tool calls as their number."""
        states = [state] if state else []
        most = max(1, min(limit, 200))
        found = await running.database.run(
            lambda: running.sessions.find(butler=running.name, states=states, limit=most)
        )
        return {"sessions": found}

    @tool(server)
    async def sessions_get(session_id: str, ctx: Context[Any, Any] | None = None) -> dict[str, Any]:
        """The whole record of one session, by id or a prefix of it."""
        # what another butler's sessions were told is for nobody but the architect
        butler = None if caller_in(ctx.request_context if ctx else None).kind == "architect" else running.name
        return {
            "session": await running.database.run(lambda: running.sessions.get(session_id, butler=butler))
        }

    @tool(server)
    async def sessions_stop(session_id: str, ctx: Context[Any, Any] | None = None) -> dict[str, Any]:
        """End a session that waits or runs, with every process it started; a session ends its own alone."""
        caller = caller_in(ctx.request_context if ctx else None)
        if caller.kind == "session":
            await _require_own(running, caller, session_id)
        by = "the architect" if caller.kind == "architect" else f"session {caller.id[:8]}"
        return {"session": await stop_any(running, session_id, by)}

    @tool(server)
    async def tick() -> dict[str, list[str]]:
        """Fire the schedules that are due now."""
        return {"fired": await running.tick()}


def add_state_tools(server: MCPServer[Any], running: RunningButler) -> None:
    @tool(server)
    async def state_get(key: str) -> dict[str, Any]:
        """The value kept under `key` and its version; null and 0 when there is none."""
        value, version = await running.database.run(running.state.read, key)
        return {"key": key, "value": value, "version": version}

    @tool(server)
    async def state_set(key: str, value: Any, if_version: int | None = None) -> dict[str, Any]:
        """Keep `value` for later sessions; with `if_version` only if nobody has changed it since."""
        version = await running.database.run(lambda: running.state.set(key, value, if_version=if_version))
        return {"key": key, "value": value, "version": version}

    @tool(server)
    async def state_list(prefix: str = "") -> dict[str, Any]:
        """All keys that start with `prefix`, with their values."""
        return {"state": await running.database.run(running.state.items, prefix)}

    @tool(server)
    async def state_delete(key: str) -> dict[str, Any]:
        """Forget `key`; `deleted` says whether it was there."""
        return {"key": key, "deleted": await running.database.run(running.state.delete, key)}


def add_schedule_tools(server: MCPServer[Any], running: RunningButler) -> None:
    @tool(server)
    async def schedule_list() -> dict[str, Any]:
        """All schedules, with when each is due next (seconds since the epoch). It fires once agreed to."""
        found = await running.database.run(running.schedules.all)
        return {"schedules": [schedule_json(running.root, running.name, schedule) for schedule in found]}

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
        return {"schedule": (await running.database.run(running.schedules.create, entry)).to_json()}

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
        if prompt is not None:
            _require_no_place(ctx, (await running.database.run(running.schedules.get, name)).cwd)
        changed = await running.database.run(
            lambda: running.schedules.update(
                name, cron=cron, prompt=prompt, enabled=enabled, late=late, until=until
            )
        )
        return {"schedule": changed.to_json()}

    @tool(server)
    async def schedule_delete(name: str) -> dict[str, Any]:
        """Remove a schedule that a tool created."""
        await running.database.run(running.schedules.delete, name)
        return {"deleted": name}


async def _require_modest(running: RunningButler, caller: Caller, request: SessionRequest) -> None:
    """A session gives another no more than it has: where and how it runs is not for it to choose."""
    chosen = (request.runtime, request.permissions, request.cwd, request.timeout)
    if any(value is not None for value in chosen):
        raise UsageError(
            "runtime, permissions, cwd and timeout are for the architect to choose",
            why="A session that could choose them would widen what it may do.",
        )
    if request.resumes is not None:
        await _require_own(running, caller, request.resumes)


async def _require_own(running: RunningButler, caller: Caller, session_id: str) -> None:
    record = await running.database.run(lambda: running.sessions.get(session_id, butler=running.name))
    if record["parent"] != caller.id:
        raise UsageError(f"Session {session_id} is not one that this session triggered")


def _require_no_place(ctx: Context[Any, Any] | None, cwd: str | None) -> None:
    if cwd is not None and caller_in(ctx.request_context if ctx else None).kind != "architect":
        raise UsageError(
            "A schedule with a cwd is the architect's",
            why="A session that could write one would run where it may not itself.",
        )
