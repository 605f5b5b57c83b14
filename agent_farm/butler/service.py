"""ButlerService: one butler with everything it works through, for the server and for `af run`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent_farm.butler.agreement import may_fire
from agent_farm.butler.credentials import CredentialStore
from agent_farm.butler.database import Database
from agent_farm.butler.failures import log_failure, reason_of
from agent_farm.butler.identity import Butler, load_butler, require_claude_md
from agent_farm.butler.order import Endpoint, Observer, Progress, RunOptions
from agent_farm.butler.result import SpawnerResult
from agent_farm.butler.runtime_choice import choose
from agent_farm.butler.scheduler import Scheduler
from agent_farm.butler.schedules import Schedule, ScheduleStore
from agent_farm.butler.sessions import SessionLog
from agent_farm.butler.spawner import Spawner
from agent_farm.butler.state import StateStore
from agent_farm.butler.tokens import Tokens
from agent_farm.errors import AgentFarmError, ForeignFile
from agent_farm.git.ignoring import exclude
from agent_farm.git.repository import find_repository
from agent_farm.paths import IGNORED_BY_GIT, FarmPaths
from agent_farm.runtimes import get_adapter

Watchers = dict[str, Observer]


@dataclass(slots=True)
class ButlerService:
    root: Path
    butler: Butler
    database: Database
    environ: Mapping[str, str]
    tokens: Tokens
    credentials: CredentialStore
    spawner: Spawner
    sessions: SessionLog
    state: StateStore
    schedules: ScheduleStore
    scheduler: Scheduler = field(init=False)
    watchers: Watchers = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(
            self.schedules, self._fire, refresh=self._refresh_for_schedules, may_fire=self._may_fire
        )

    @property
    def name(self) -> str:
        return self.butler.name

    async def tick(self) -> list[str]:
        """Fire the schedules that are due now."""
        return await self.scheduler.tick()

    async def trigger(
        self,
        prompt: str,
        context: str | None = None,
        *,
        trigger_source: str = "external",
        max_turns: int = 20,
        runtime: str | None = None,
        permissions: str | None = None,
        options: RunOptions | None = None,
        observer: Observer | None = None,
    ) -> SpawnerResult:
        """A session on the runtime asked for, else on the butler's own."""
        await self.refresh()

        def pick() -> RunOptions:
            return choose(
                self.root,
                self.butler,
                self.credentials,
                self.environ,
                runtime=runtime,
                permissions=permissions,
                options=options,
            )

        chosen = await self.database.run(pick)
        watch = self._watch(observer) if observer else None
        return await self.spawner.trigger(
            prompt,
            context,
            trigger_source=trigger_source,
            max_turns=max_turns,
            options=chosen,
            observer=watch,
        )

    async def refresh(self) -> None:
        """Take from the butler's file and the settings what can change while sessions run."""
        new = await self.database.run(self._reload)
        if new != self.butler:
            await self.database.run(self.schedules.take_from_file, new.schedules)
            self.butler = new
            self.spawner.become(new)

    def _reload(self) -> Butler:
        """Port, transport and slots were set up with the server, and stay what they were."""
        old = self.butler
        return replace(
            load_butler(self.root, old.name),
            port=old.port,
            transport=old.transport,
            max_concurrent_sessions=old.max_concurrent_sessions,
        )

    async def _refresh_for_schedules(self) -> None:
        """With a file that is wrong, those that are known fire, and their sessions say what is wrong."""
        try:
            await self.refresh()
        except AgentFarmError as error:
            log_failure(_logger(), self.name, error)

    def _may_fire(self, schedule: Schedule) -> bool:
        return may_fire(self.root, self.name, schedule)

    def tell(self, progress: Progress) -> None:
        """Something happened in a session that somebody may be watching."""
        if watcher := self.watchers.get(progress.session_id):
            watcher(progress)

    def close(self) -> None:
        self.spawner.close()
        self.database.close()

    def _watch(self, observer: Observer) -> Callable[[Progress], None]:
        def observe(progress: Progress) -> None:
            if progress.event == "queued":
                self.watchers[progress.session_id] = observer
            elif progress.event == "ended":
                self.watchers.pop(progress.session_id, None)
            observer(progress)

        return observe

    async def _fire(self, prompt: str, trigger_source: str) -> SpawnerResult:
        """Nobody waits to be told: what cannot be started is on record, too."""
        try:
            result = await self.trigger(prompt, trigger_source=trigger_source)
            if result.session_id:
                return result
            reason = result.error or "refused"
        except Exception as error:
            log_failure(_logger(), trigger_source, error)
            reason = reason_of(error)
        return await self.spawner.reject(prompt, trigger_source, f"Not started: {reason}")


def open_database(root: Path) -> Database:
    """Also in a repository that never had a builder: git is not to see what is made here."""
    try:
        exclude(find_repository(root), IGNORED_BY_GIT)
    except ForeignFile:
        raise
    except AgentFarmError:  # no repository, or one that cannot be written: the database will say so
        pass
    return Database(FarmPaths(root).state / "butler.db")


def open_sessions(root: Path) -> SessionLog:
    paths = FarmPaths(root)
    return SessionLog(open_database(root), paths.locks)


def open_service(
    root: Path, name: str | None, *, port: int, tokens: Tokens, environ: Mapping[str, str]
) -> ButlerService:
    """To be called inside the loop that the service will live in."""
    butler = load_butler(root, name)
    require_claude_md(butler)
    paths = FarmPaths(root)
    database = open_database(root)
    credentials = CredentialStore(database, environ)
    spawner = Spawner(
        butler,
        get_adapter("demo"),  # each trigger brings the runtime that holds for it
        database,
        Endpoint(port, butler.transport, tokens),
        credentials=credentials,
        environ=environ,
    )
    sessions = SessionLog(database, paths.locks)
    sessions.heal()
    schedules = ScheduleStore(database, butler.name)
    schedules.take_from_file(butler.schedules)
    return ButlerService(
        root, butler, database, environ, tokens, credentials, spawner, sessions,
        StateStore(database, butler.name), schedules,
    )  # fmt: skip


def _logger() -> Any:
    import logging

    return logging.getLogger(__name__)
