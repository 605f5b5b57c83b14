"""ButlerService: one butler with everything it works through, for the server and for `af run`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agent_farm.errors import AgentFarmError, ForeignFile
from agent_farm.git.ignoring import exclude
from agent_farm.git.repository import find_repository
from agent_farm.paths import IGNORED_BY_GIT, FarmPaths
from agent_farm.runtimes import get_adapter
from agent_farm.server.tokens import Tokens
from agent_farm.sessions.agreement import may_fire
from agent_farm.sessions.butlers import Butler, load_butler, require_claude_md
from agent_farm.sessions.credentials import CredentialStore
from agent_farm.sessions.database import Database
from agent_farm.sessions.failures import log_failure, reason_of
from agent_farm.sessions.order import Endpoint, Observer, Progress, RunOptions
from agent_farm.sessions.reach import session_bounds
from agent_farm.sessions.result import SpawnerResult
from agent_farm.sessions.resuming import resumed_options
from agent_farm.sessions.retention import DAY_SECONDS, Limits, prune_sessions
from agent_farm.sessions.run_request import RunRequest
from agent_farm.sessions.runtime_choice import choose
from agent_farm.sessions.scheduler import Scheduler
from agent_farm.sessions.schedules import Schedule, ScheduleStore
from agent_farm.sessions.session_log import SessionLog
from agent_farm.sessions.spawner import Spawner
from agent_farm.sessions.state import StateStore
from agent_farm.sessions.trigger_sources import SCHEDULE_PREFIX
from agent_farm.settings import load_settings

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
    _started: set[asyncio.Task[SpawnerResult]] = field(default_factory=set)

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

    async def run(self, request: RunRequest, observer: Observer | None = None) -> SpawnerResult:
        """The session that is asked for, waited for."""
        return await self.trigger(
            request.prompt,
            request.context,
            trigger_source=request.source,
            max_turns=request.max_turns,
            runtime=request.runtime,
            permissions=request.permissions,
            options=request.options(),
            resume=request.resume,
            observer=observer,
        )

    async def start(self, request: RunRequest) -> SpawnerResult | str:
        """Its id once it is accepted, or the result when it was refused; it goes on by itself."""
        accepted: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def observe(progress: Progress) -> None:
            if not accepted.done():
                accepted.set_result(progress.session_id)

        task = asyncio.create_task(self.run(request, observe))
        self._started.add(task)
        task.add_done_callback(self._started.discard)
        await asyncio.wait((task, accepted), return_when=asyncio.FIRST_COMPLETED)
        return accepted.result() if accepted.done() else task.result()

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
        resume: str | None = None,
        observer: Observer | None = None,
    ) -> SpawnerResult:
        """A session on the runtime asked for, else on the butler's own, else on that of `resume`."""
        await self.refresh()

        def pick() -> RunOptions:
            given, named = options, runtime
            if resume is not None:
                given = resumed_options(self.sessions, resume, self.name, runtime, options)
                named = str((given.resumed or {})["runtime"])
            chosen = choose(
                self.root,
                self.butler,
                self.credentials,
                self.environ,
                runtime=named,
                permissions=permissions,
                options=given,
            )
            return self._bounded(chosen)

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

    def _bounded(self, options: RunOptions) -> RunOptions:
        """With what it may read and may not change, as the files lie now."""
        can_read = self.butler.reads_checkout and (
            options.adapter is None or options.adapter.cli.reads_beside
        )
        checkout = (options.checkout or self.root) if can_read else None
        cwd = options.cwd or self.butler.directory
        bounds = session_bounds(self.butler, cwd, root=self.root, checkout=checkout)
        return replace(options, bounds=bounds, checkout=checkout)

    async def keep_tidy(self) -> None:
        """For ever: once a day without the records that are older, or more, than the settings keep."""
        while True:
            try:
                removed = await self.database.run(self._prune)
                if removed:
                    _logger().info("Removed %d records of sessions", len(removed))
            except Exception as error:
                log_failure(_logger(), "Removing old records", error)
            await asyncio.sleep(DAY_SECONDS)

    def _prune(self) -> list[str]:
        limits = Limits.of(load_settings(self.root, self.environ))
        return prune_sessions(self.sessions, limits, butler=self.name)

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

    async def _fire(self, schedule: Schedule) -> SpawnerResult:
        """Nobody waits to be told: what cannot be started is on record, too."""
        trigger_source = SCHEDULE_PREFIX + schedule.name
        try:
            options = RunOptions(cwd=await self.database.run(schedule.directory, self.root))
            result = await self.trigger(schedule.prompt, trigger_source=trigger_source, options=options)
            if result.session_id:
                return result
            reason = result.error or "refused"
        except Exception as error:
            log_failure(_logger(), trigger_source, error)
            reason = reason_of(error)
        return await self.spawner.reject(schedule.prompt, trigger_source, f"Not started: {reason}")


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
