"""Desk: what the tools of a butler work through, in the server's process and in another."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent_farm.server.client import call_tool, start_session
from agent_farm.sessions.butlers import load_butler
from agent_farm.sessions.database import Database
from agent_farm.sessions.result import SpawnerResult, result_of
from agent_farm.sessions.run_request import RunRequest
from agent_farm.sessions.schedules import ScheduleStore
from agent_farm.sessions.service import open_sessions
from agent_farm.sessions.session_log import SessionLog
from agent_farm.sessions.state import StateStore

LOOK_SECONDS = 0.2


class Desk(Protocol):
    @property
    def root(self) -> Path: ...
    @property
    def name(self) -> str: ...
    @property
    def database(self) -> Database: ...
    @property
    def sessions(self) -> SessionLog: ...
    @property
    def state(self) -> StateStore: ...
    @property
    def schedules(self) -> ScheduleStore: ...

    async def run(self, request: RunRequest) -> SpawnerResult: ...

    async def start(self, request: RunRequest) -> SpawnerResult | str: ...

    async def tick(self) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class FarDesk:
    """For `af mcp`: what is on record is read and written here, what runs, runs in the farm's server."""

    root: Path
    name: str
    sessions: SessionLog
    state: StateStore
    schedules: ScheduleStore

    @property
    def database(self) -> Database:
        return self.sessions.database

    async def start(self, request: RunRequest) -> SpawnerResult | str:
        return await asyncio.to_thread(self._start, request)

    async def run(self, request: RunRequest) -> SpawnerResult:
        """No thread is held until the session has ended: this process can be ended meanwhile."""
        started = await self.start(request)
        if not isinstance(started, str):
            return started
        while True:
            record = await self.database.run(self.sessions.get, started)
            if record["ended_at"] is not None:
                return result_of(record)
            await asyncio.sleep(LOOK_SECONDS)

    async def tick(self) -> list[str]:
        return await asyncio.to_thread(self._tick)

    def _start(self, request: RunRequest) -> SpawnerResult | str:
        from agent_farm.server.launching import ensure_server

        butler = self.sessions.get(request.resume)["butler"] if request.resume else None
        return start_session(ensure_server(self.root, butler), request)

    def _tick(self) -> list[str]:
        from agent_farm.server.launching import ensure_server

        return list(call_tool(ensure_server(self.root, None), "tick")["fired"])


def open_desk(root: Path) -> FarDesk:
    """The desk of the farm's own butler."""
    butler = load_butler(root)
    sessions = open_sessions(root)
    schedules = ScheduleStore(sessions.database, butler.name)
    schedules.take_from_file(butler.schedules)
    return FarDesk(root, butler.name, sessions, StateStore(sessions.database, butler.name), schedules)
