"""Headless sessions that the farm's server runs on other machines: places, begins, follows and ends them.

The machine is recorded before it is asked. A session that a machine may have heard of is begun nowhere else;
one that no machine has heard of goes to another.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from agent_farm.errors import AgentFarmError, NoRoom, Unreachable
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.operations.fleet import session_calls as calls
from agent_farm.operations.fleet.session_slots import SessionSlots
from agent_farm.operations.fleet.session_watch import Watched, Watcher
from agent_farm.sessions.database import Database
from agent_farm.sessions.other_machines import SessionOrder
from agent_farm.sessions.records import session_place, session_take_back
from agent_farm.sessions.runner import failed
from agent_farm.sessions.session import Observer, Progress, Session
from agent_farm.uncancelled import finish, finished_result

T = TypeVar("T")

_THREADS = 32
_BEGINNING = 3  # at a time on one machine, because each takes a process there
_AGAIN_SECONDS = 1.0
_AVOID_SECONDS = 30.0
_TELL_SECONDS = 25.0


@dataclass
class SessionsElsewhere:
    """Implements `sessions.other_machines.Elsewhere`."""

    root: Path
    database: Database
    _threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_THREADS, thread_name_prefix="fleet")
    )
    _pushed: dict[str, str] = field(default_factory=dict)
    _avoided: dict[str, float] = field(default_factory=dict)
    _lines: dict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    _turns: dict[str, asyncio.Semaphore] = field(
        default_factory=lambda: defaultdict(lambda: asyncio.Semaphore(_BEGINNING))
    )
    _room: asyncio.Event = field(default_factory=asyncio.Event)
    _watchers: dict[str, Watcher] = field(default_factory=dict)
    _background: set[asyncio.Task[Any]] = field(default_factory=set)
    _leaves: bool = False

    def __post_init__(self) -> None:
        self._farm: Farm = open_farm(self.root)
        self._slots = SessionSlots(self._farm)

    async def run(self, session: Session, order: SessionOrder, observer: Observer) -> Session:
        wish = session.host or ""
        while True:
            host = await self._placed(session.id, wish)
            here = replace(session, host=host, state="running")
            beginning = asyncio.create_task(self._begun(here, wish, order))
            try:
                problem = await asyncio.shield(beginning)
            except asyncio.CancelledError:
                await finish(beginning)
                if beginning.exception() is not None or beginning.result() is not None:
                    raise
                if self._leaves:
                    return here
                return await finished_result(self._ended(self._watch(here, observer)))
            except AgentFarmError as error:  # of the machine, or of the session itself
                self._release(session.id)
                return failed(here, error)
            if problem is None:
                observer(Progress(session.id, "running", {"runtime": session.runtime, "host": host}))
                return await self.go_on(here, observer)
            self._release(session.id)
            if wish == host:
                return failed(here, problem)
            self._avoided[host] = time.monotonic() + _AVOID_SECONDS

    async def go_on(self, session: Session, observer: Observer) -> Session:
        if self._leaves:
            return session
        watched = self._watch(session, observer)
        try:
            return await asyncio.shield(watched.ended)
        except asyncio.CancelledError:
            return await finished_result(self._ended(watched))

    def recorded(self, session: Session) -> None:
        assert session.host
        self._release(session.id)
        if watcher := self._watchers.get(session.host):
            watcher.acknowledge(session.id)

    def leave(self) -> None:
        self._leaves = True
        for watcher in self._watchers.values():
            watcher.leave()

    async def hold_again(self, sessions: list[Session]) -> None:
        """Hold the slots of sessions that an earlier server began, and release all others."""
        for session in sessions:
            await self._on_thread(self._slots.hold_again, session.id, session.host)
        await self._on_thread(self._slots.release_others, [session.id for session in sessions])

    async def _placed(self, id: str, wish: str) -> str:
        """A machine for the session; those with the same wish get theirs in the order they came."""
        async with self._lines[wish]:
            while True:
                self._room.clear()
                now = time.monotonic()
                avoided = {host for host, until in self._avoided.items() if until > now and host != wish}
                try:
                    return await self._on_thread(self._slots.hold, id, wish, avoided)
                except NoRoom:  # other farms release slots, too
                    try:
                        await asyncio.wait_for(self._room.wait(), _AGAIN_SECONDS)
                    except TimeoutError:
                        continue

    async def _begun(self, session: Session, wish: str, order: SessionOrder) -> Unreachable | None:
        """None once it has begun, or may have. It is asked again until the machine answers or is lost."""
        host = session.host or ""
        async with self._turns[host]:
            await session_place(self.database, session.id, host)
            may_have, until = False, time.monotonic() + self._farm.settings.number("fleet.lost_seconds")
            while True:
                try:
                    commit = await self._on_thread(calls.prepare, self._farm, host, self._pushed)
                    await self._on_thread(calls.begin, self._farm, host, session, commit, order)
                except Unreachable as error:
                    may_have = may_have or error.began
                    if not may_have:
                        await session_take_back(self.database, session.id, wish)
                        return error
                    if self._leaves or time.monotonic() > until:
                        return None
                    await asyncio.sleep(_AGAIN_SECONDS)
                else:
                    return None

    def _watch(self, session: Session, observer: Observer) -> Watched:
        host = session.host or ""
        watcher = self._watchers.get(host)
        if watcher is None:
            watcher = self._watchers[host] = Watcher(host, self._farm, self.database, self._on_thread)
        return watcher.add(session, observer)

    async def _ended(self, watched: Watched) -> Session:
        """End the session there; returns it as its machine says it ended."""
        session, host = watched.session, watched.session.host or ""
        until, problem = time.monotonic() + _TELL_SECONDS, None
        while not watched.ended.done() and time.monotonic() < until:
            try:
                if ended := await self._on_thread(calls.stop, self._farm, host, session):
                    watched.end(ended)
            except AgentFarmError as error:  # Unreachable, or it ended already
                problem = error
                await asyncio.wait([watched.ended], timeout=_AGAIN_SECONDS)
        if not watched.ended.done():
            why = f"Cancelled, but {host} could not be told and may continue it: "
            why += problem.sentence if problem else "it is late"
            watched.end(replace(session, state="cancelled", success=False, error=why))
        return watched.ended.result()

    def _release(self, id: str) -> None:
        async def release() -> None:
            await self._on_thread(self._slots.release, id)
            self._room.set()

        task = asyncio.create_task(release())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _on_thread(self, function: Callable[..., T], *given: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *given)
