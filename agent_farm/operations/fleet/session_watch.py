"""Follows all sessions on one machine with one call each second, as long as there are any."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.operations.fleet import session_calls as calls
from agent_farm.operations.for_home.sessions_for_home import Looked
from agent_farm.sessions.database import Database
from agent_farm.sessions.failures import log_failure
from agent_farm.sessions.records import session_progress
from agent_farm.sessions.session import Observer, Progress, Session

LOOK_SECONDS = 1.0

_log = logging.getLogger(__name__)
OnThread = Callable[..., Awaitable[Any]]


@dataclass
class Watched:
    """`ended` gets the session as it ended, or as it is when this process ends."""

    session: Session
    observer: Observer
    ended: asyncio.Future[Session]
    mark: str = ""
    calls: int = 0

    def end(self, session: Session) -> None:
        if not self.ended.done():
            self.ended.set_result(session)


@dataclass
class Watcher:
    host: str
    farm: Farm
    database: Database
    on_thread: OnThread
    _watched: dict[str, Watched] = field(default_factory=dict)
    _recorded: list[str] = field(default_factory=list)
    _task: asyncio.Task[None] | None = None
    _silent_since: float | None = None

    def add(self, session: Session, observer: Observer) -> Watched:
        watched = Watched(session, observer, asyncio.get_running_loop().create_future())
        self._watched[session.id] = watched
        self._go()
        return watched

    def acknowledge(self, id: str) -> None:
        self._recorded.append(id)
        self._go()

    def leave(self) -> None:
        for watched in self._watched.values():
            watched.end(watched.session)

    def _go(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        while True:
            self._watched = {id: one for id, one in self._watched.items() if not one.ended.done()}
            if not self._watched and not self._recorded:
                return
            recorded, self._recorded = self._recorded, []
            seen = {id: one.mark for id, one in self._watched.items()}
            try:
                looked = await self.on_thread(calls.look, self.farm, self.host, seen, recorded)
            except AgentFarmError as error:
                if self._watched:  # otherwise there is nothing to acknowledge
                    self._recorded += recorded
                self._missed(error)
            except Exception as error:  # a bug of ours must not stop the looks
                log_failure(_log, f"Looking at the sessions on {self.host}", error)
            else:
                self._silent_since = None
                await self._take(looked)
            await asyncio.sleep(LOOK_SECONDS)

    def _missed(self, error: AgentFarmError) -> None:
        now = time.monotonic()
        self._silent_since = self._silent_since or now
        if now - self._silent_since < self.farm.settings.number("fleet.lost_seconds"):
            return
        why = f"Interrupted: {self.host} is lost, and nobody knows how far it got: {error.sentence}"
        for watched in self._watched.values():
            watched.end(replace(watched.session, state="interrupted", success=False, error=why))

    async def _take(self, looked: Looked) -> None:
        for id in looked.missing:
            watched = self._watched[id]
            why = f"Interrupted: {self.host} has no such session"
            watched.end(replace(watched.session, state="interrupted", success=False, error=why))
        for told in looked.sessions:
            watched = self._watched[told.session.id]
            watched.mark = told.mark
            said = calls.told(watched.session, told.session)
            if calls.has_ended(told.session):
                watched.end(said)
                continue
            made = said.tool_calls if isinstance(said.tool_calls, list) else []
            for call in made[watched.calls :]:
                detail = {"name": call.get("name"), "failed": call.get("is_error")}
                watched.observer(Progress(watched.session.id, "tool", detail))
            watched.calls = max(watched.calls, len(made))
            await session_progress(self.database, watched.session.id, said.output or "", made)
