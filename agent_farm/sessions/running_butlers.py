"""All butlers of a farm, in the one process that runs their sessions."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agent_farm.clock_jumps import ClockJumped
from agent_farm.errors import AgentFarmError
from agent_farm.runtimes import get_adapter
from agent_farm.sessions.butlers import Butler, load_butler, require_claude_md
from agent_farm.sessions.credential_store import CredentialStore
from agent_farm.sessions.database import Database
from agent_farm.sessions.failures import log_failure, reason_of
from agent_farm.sessions.other_machines import NewElsewhere
from agent_farm.sessions.records import SessionLog
from agent_farm.sessions.retention import DAY_SECONDS, Limits, prune_sessions
from agent_farm.sessions.roster import all_butler_names, own_butler_name
from agent_farm.sessions.runner import Endpoint
from agent_farm.sessions.running_butler import RunningButler
from agent_farm.sessions.scheduler import next_look
from agent_farm.sessions.schedules import ScheduleStore
from agent_farm.sessions.session import Progress
from agent_farm.sessions.spawner import Spawner
from agent_farm.sessions.stores import open_database
from agent_farm.settings import load_settings

if TYPE_CHECKING:
    from agent_farm.server.callers import Tokens

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class RunningButlers:
    """Each is opened when it is first needed. They belong to one event loop.

    `ports` are those that the server listens on, the farm's own first; a butler that has its own port serves
    its sessions there.
    """

    root: Path
    database: Database
    environ: Mapping[str, str]
    tokens: Tokens
    ports: tuple[int, ...]
    sessions: SessionLog
    elsewhere: NewElsewhere | None = None
    own: RunningButler = field(init=False)
    _open: dict[str, RunningButler] = field(default_factory=dict)
    _failing: dict[str, str] = field(default_factory=dict)
    _opening: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.own = self.of(own_butler_name(self.root))

    def of(self, name: str | None) -> RunningButler:
        """The named butler, else the farm's own. Blocks."""
        if name is None:
            return self.own
        with self._opening:
            if name not in self._open:
                self._open[name] = self._opened(load_butler(self.root, name))
            return self._open[name]

    @property
    def opened(self) -> tuple[RunningButler, ...]:
        return tuple(self._open.values())

    @property
    def accepting(self) -> bool:
        return all(one.spawner.queue.accepting for one in self.opened)

    async def tick(self) -> list[str]:
        """Fire all butlers' schedules that are due now; a butler's failure is logged, once."""
        fired: list[str] = []
        for name in await self.database.run(self._names):
            try:
                fired += await (await self.database.run(self.of, name)).scheduler.tick()
                self._failing.pop(name, None)
            except Exception as error:
                if self._failing.get(name) != (reason := reason_of(error)):
                    log_failure(_log, f"Looking at the schedules of {name}", error)
                self._failing[name] = reason
        return fired

    async def run_schedules(self) -> None:
        """Runs for ever."""
        while True:
            await self.tick()
            await asyncio.sleep(next_look(time.time()))

    async def keep_tidy(self) -> None:
        """Runs for ever: deletes records beyond what the settings keep."""
        while True:
            try:
                if removed := await self.database.run(self._prune):
                    _log.info("Removed %d records of sessions", len(removed))
            except Exception as error:
                log_failure(_log, "Looking after the records", error)
            await asyncio.sleep(DAY_SECONDS)

    def has_work(self) -> bool:
        """Whether sessions wait or run, or schedules may become due. Blocks."""
        return any(one.has_work() for one in self.opened)

    def tell(self, progress: Progress) -> None:
        """Something happened in a session that somebody may be watching."""
        for one in self.opened:
            one.tell(progress)

    async def go_on_elsewhere(self) -> None:
        """Follow sessions on other machines that an earlier server began."""
        found = await self.database.run(self.sessions.elsewhere)
        if found and self.elsewhere:
            await self.elsewhere().hold_again(found)
        for session in found:
            try:
                await (await self.database.run(self.of, session.butler)).go_on(session)
            except AgentFarmError as error:
                log_failure(_log, f"Session {session.id}", error)

    async def drain(self, seconds: float) -> bool:
        """Returns True if no session had to be cancelled."""
        done = await asyncio.gather(*(one.spawner.drain(seconds) for one in self.opened))
        for one in self.opened:
            await one.scheduler.finish()
        return all(done)

    def close(self) -> None:
        self.database.close()

    def _names(self) -> list[str]:
        return list(dict.fromkeys([self.own.name, *all_butler_names(self.root)]))

    def _prune(self) -> list[str]:
        limits = Limits.of(load_settings(self.root, self.environ))
        try:
            return prune_sessions(self.sessions, limits, asked=False)
        except ClockJumped as error:
            log_failure(_log, "Looking after the records", error)
            return prune_sessions(self.sessions, Limits(number=limits.number))

    def _opened(self, butler: Butler) -> RunningButler:
        require_claude_md(butler)
        credentials = CredentialStore(self.database, self.environ)
        port = butler.port if butler.port in self.ports else self.ports[0]
        spawner = Spawner(
            butler,
            get_adapter("demo"),  # unused: each session brings its own runtime
            self.database,
            Endpoint(port, butler.transport, self.tokens),
            credentials=credentials,
            environ=self.environ,
            elsewhere=self.elsewhere,
        )
        schedules = ScheduleStore(self.database, butler.name)
        schedules.take_from_file(butler.schedules)
        return RunningButler(
            self.root, butler, self.database, self.environ, credentials, spawner, self.sessions,
            schedules,
        )  # fmt: skip


def open_butlers(
    root: Path,
    *,
    ports: Sequence[int],
    tokens: Tokens,
    environ: Mapping[str, str],
    elsewhere: Callable[[Database], NewElsewhere] | None = None,
) -> RunningButlers:
    """Call it inside the loop in which they will live, in the one process that runs their sessions."""
    database = open_database(root)
    sessions = SessionLog(database)
    sessions.heal()  # what is recorded as running was run by an earlier server
    reach = elsewhere(database) if elsewhere else None
    return RunningButlers(root, database, environ, tokens, tuple(ports), sessions, reach)
