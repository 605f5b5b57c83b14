"""Desk: what every answer of the dashboard is made with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from agent_farm.builders.ids import match_builder
from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import NotFound
from agent_farm.farm.farm import Farm, open_farm

if TYPE_CHECKING:
    from agent_farm.sessions.butlers import Butler
    from agent_farm.sessions.records import SessionLog
    from agent_farm.sessions.running import RunningButler
    from agent_farm.sessions.schedules import ScheduleStore

P = ParamSpec("P")
T = TypeVar("T")

_THREADS = 16


def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="dashboard")


@dataclass(slots=True)
class Desk:
    running: RunningButler
    clock: Callable[[], float] = time.time
    _threads: ThreadPoolExecutor = field(default_factory=_threads)

    @property
    def root(self) -> Path:
        return self.running.root

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """On a thread of ours: a message that waits for its builder holds up nobody else's work."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(function, *args, **kwargs))

    def farm(self) -> Farm:
        """Opened for each answer: settings may have changed."""
        return open_farm(self.root)

    def require(self, farm: Farm, id: str) -> BuilderRecord:
        """By its whole id: what a page sends never means another builder."""
        records = farm.records()
        if id in records:
            return records[id]
        if any(known.startswith(id) for known in records):
            raise NotFound(f"No builder {id}", hint="af status")
        match_builder(id, list(records))
        raise AssertionError("an unknown id was matched")

    def sessions(self) -> SessionLog:
        return self.running.sessions

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """From a thread of ours, what belongs to the server's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self.running.loop).result()

    def butler(self, name: str | None = None) -> Butler:
        from agent_farm.sessions.butlers import load_butler

        return load_butler(self.root, name)

    def all_schedules(self) -> list[ScheduleStore]:
        from agent_farm.sessions.butlers import all_butler_names

        return [self.schedules(name) for name in all_butler_names(self.root)]

    def schedules(self, name: str | None = None) -> ScheduleStore:
        from agent_farm.sessions.schedules import ScheduleStore

        butler = self.butler(name)
        store = ScheduleStore(self.running.database, butler.name)
        store.take_from_file(butler.schedules)
        return store

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
