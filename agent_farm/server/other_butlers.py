"""Sessions of any butler: of the one that runs in this server, or of one that has a server of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from agent_farm.server.client import start_session, stop_session
from agent_farm.sessions.running import RunningButler
from agent_farm.sessions.session import SessionRequest, SpawnerResult


async def start_as(
    running: RunningButler,
    butler: str | None,
    request: SessionRequest,
    environ: Mapping[str, str] | None = None,
) -> SpawnerResult | str:
    """Its id once it is accepted, or the result when it was refused."""
    if request.resumes and butler is None:
        butler = (await running.database.run(running.sessions.load, request.resumes)).butler
    if butler in (None, running.name):
        return await running.start(request, environ)
    return await asyncio.to_thread(start_session, running.root, butler, request)


async def stop_any(running: RunningButler, session_id: str, by: str) -> dict[str, Any]:
    """The record once it has ended."""
    session = await running.database.run(running.sessions.load, session_id)
    if session.butler == running.name:
        return await running.stop(session.id, by)
    return await asyncio.to_thread(stop_session, running.root, session.butler, session.id, by)
