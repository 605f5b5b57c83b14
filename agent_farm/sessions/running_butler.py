"""RunningButler: one butler with everything it needs, in the process that runs its sessions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import msgspec

from agent_farm.consent import Consent
from agent_farm.errors import AgentFarmError, TimedOut, UsageError
from agent_farm.sessions.butlers import Butler, load_butler
from agent_farm.sessions.credential_store import CredentialStore
from agent_farm.sessions.database import Database
from agent_farm.sessions.failures import log_failure, reason_of
from agent_farm.sessions.other_machines import LOCAL, place_of
from agent_farm.sessions.reach import session_bounds
from agent_farm.sessions.records import SessionLog
from agent_farm.sessions.runtime_choice import Choice, choose, most_permissions, narrower
from agent_farm.sessions.scheduler import Scheduler
from agent_farm.sessions.schedules import Schedule, ScheduleStore, may_fire
from agent_farm.sessions.session import (
    Observer,
    Progress,
    Session,
    SessionRequest,
    SpawnerResult,
)
from agent_farm.sessions.spawner import Spawner
from agent_farm.sessions.trigger_sources import SCHEDULE_PREFIX
from agent_farm.settings import open_settings

STOP_SECONDS = 30.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class RunningButler:
    """Belongs to one event loop."""

    root: Path
    butler: Butler
    database: Database
    environ: Mapping[str, str]
    credentials: CredentialStore
    spawner: Spawner
    sessions: SessionLog
    schedules: ScheduleStore
    scheduler: Scheduler = field(init=False)
    _watchers: dict[str, Observer] = field(default_factory=dict)
    _started: set[asyncio.Task[SpawnerResult]] = field(default_factory=set)

    def __post_init__(self) -> None:
        agreed = partial(may_fire, self.root, self.name)
        self.scheduler = Scheduler(
            self.schedules,
            self._fire,
            refresh=self._refresh_for_schedules,
            may_fire=agreed,
            is_unended=self._is_unended,
        )

    @property
    def name(self) -> str:
        return self.butler.name

    async def run(
        self,
        request: SessionRequest,
        environ: Mapping[str, str] | None = None,
        observer: Observer | None = None,
        session_id: str | None = None,
        *,
        agreed: Consent = False,
    ) -> SpawnerResult:
        """Run the requested session and wait for it; `environ` is the caller's shell's."""
        request.require_good()
        await self.refresh()
        request, choice = await self.database.run(self._choose, request, environ or {})
        choice = replace(choice, agreed=agreed)
        return await self.spawner.run(request, choice, self._watched(observer), session_id)

    async def start(
        self,
        request: SessionRequest,
        environ: Mapping[str, str] | None = None,
        session_id: str | None = None,
        *,
        agreed: Consent = False,
    ) -> SpawnerResult | str:
        """The session's id once it is accepted, or the result of a refusal; it continues by itself."""
        accepted: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def observe(progress: Progress) -> None:
            if not accepted.done():
                accepted.set_result(progress.session_id)

        task = asyncio.create_task(self.run(request, environ, observe, session_id, agreed=agreed))
        self._started.add(task)
        task.add_done_callback(self._started.discard)
        await asyncio.wait((task, accepted), return_when=asyncio.FIRST_COMPLETED)
        return accepted.result() if accepted.done() else task.result()

    async def go_on(self, session: Session) -> None:
        """Follow a session on another machine that an earlier server began."""
        fired = await self.database.run(self.schedules.due_of, session)
        run = self.spawner.go_on(session)
        if run and fired:
            self.scheduler.follow(*fired, lambda: run)

    async def stop(self, session_id: str, by: str) -> Session:
        """End a waiting or running session and its processes; returns its record once it has ended."""
        session = await self.database.run(lambda: self.sessions.load(session_id, butler=self.name))
        if session.ended_at is not None:
            raise UsageError(
                f"Session {session.id[:8]} has ended already: {session.state}",
                hint=f"af sessions {session.id[:8]}",
            )
        task = self.spawner.stop(session.id, by)
        if task and not (await asyncio.wait([task], timeout=STOP_SECONDS))[0]:
            raise TimedOut(
                f"Session {session.id[:8]} has not ended within {STOP_SECONDS:g} s",
                why="It was told to end, and does not answer.",
                hint="af butler stop --now",
            )
        ended = await self.database.run(self.sessions.load, session.id)
        if ended.ended_at is None:
            raise AgentFarmError(
                f"Session {session.id[:8]} has ended; its record cannot be written yet",
                why="This is repeated every few seconds.",
                hint="af butler logs",
            )
        return ended

    def has_work(self) -> bool:
        """Whether sessions wait or run, or schedules may become due. Blocks."""
        return bool(
            self.spawner.is_busy or any(schedule.next_due is not None for schedule in self.schedules.all())
        )

    async def refresh(self) -> None:
        """Take from the butler's file and the settings what may change while sessions run."""
        new = await self.database.run(self._reload)
        if new != self.butler:
            await self.database.run(self.schedules.take_from_file, new.schedules)
            self.butler = new
            self.spawner.become(new)

    def tell(self, progress: Progress) -> None:
        """Something happened in a session that somebody may be watching."""
        if watcher := self._watchers.get(progress.session_id):
            watcher(progress)

    def _choose(self, request: SessionRequest, environ: Mapping[str, str]) -> tuple[SessionRequest, Choice]:
        """The request and its runtime, with bounds computed from the files as they are now."""
        resumed = None
        if request.resumes is not None:
            request, resumed = _resumed(self.sessions, request, self.name)
        host = place_of(request, open_settings(self.root, {**self.environ, **environ}))
        request = msgspec.structs.replace(request, host=host)
        chosen = choose(self.root, self.butler, self.credentials, {**self.environ, **environ}, request)
        can_read = self.butler.reads_checkout and chosen.adapter.cli.reads_beside
        checkout = Path(request.checkout or self.root) if can_read else None
        cwd = Path(request.cwd or self.butler.directory)
        return request, replace(
            chosen,
            permissions=narrower(chosen.permissions, most_permissions(self.sessions, request.parent)),
            environ=environ,
            checkout=checkout,
            bounds=session_bounds(self.butler, cwd, root=self.root, checkout=checkout),
            conversation_id=resumed.conversation_id if resumed else None,
            home=(resumed.home or resumed.id) if resumed else None,
        )

    def _reload(self) -> Butler:
        """Port, transport and slots were set up with the server, and do not change."""
        old = self.butler
        return replace(
            load_butler(self.root, old.name),
            port=old.port,
            transport=old.transport,
            max_concurrent_sessions=old.max_concurrent_sessions,
        )

    async def _refresh_for_schedules(self) -> None:
        """If the file is wrong, the known schedules still fire, and their sessions report what is wrong."""
        try:
            await self.refresh()
        except AgentFarmError as error:
            log_failure(_log, self.name, error)

    def _watched(self, observer: Observer | None) -> Callable[[Progress], None]:
        def observe(progress: Progress) -> None:
            if observer is None:
                return
            if progress.event == "queued":
                self._watchers[progress.session_id] = observer
            elif progress.event == "ended":
                self._watchers.pop(progress.session_id, None)
            observer(progress)

        return observe

    def _is_unended(self, schedule: Schedule) -> bool:
        source = SCHEDULE_PREFIX + schedule.name
        return bool(
            self.sessions.find(butler=self.name, states=("queued", "running"), source=source, limit=1)
        )

    async def _fire(self, schedule: Schedule) -> SpawnerResult:
        """Nobody waits for the result, so what could not be started is recorded, too."""
        request = SessionRequest(prompt=schedule.prompt, trigger_source=SCHEDULE_PREFIX + schedule.name)
        try:
            place = await self.database.run(schedule.directory, self.root)
            here = msgspec.structs.replace(request, cwd=str(place) if place else None)
            result = await self.run(here)
            if result.session_id:
                return result
            reason = result.error or "refused"
        except Exception as error:
            log_failure(_log, request.trigger_source, error)
            reason = reason_of(error)
        return await self.spawner.reject(request, f"Not started: {reason}")


def _resumed(log: SessionLog, request: SessionRequest, butler: str) -> tuple[SessionRequest, Session]:
    """The request with the runtime and directory by which the runtime finds the conversation."""
    session = log.load(request.resumes or "", butler=butler)
    _require_conversation(session)
    if request.runtime not in (None, session.runtime):
        raise UsageError(
            f"Session {session.id[:8]} ran on {session.runtime}, not on {request.runtime}",
            why="A conversation continues on the runtime that has it.",
        )
    if request.host not in (None, "fleet", session.host or LOCAL):
        raise UsageError(
            f"Session {session.id[:8]} ran on {session.host or 'this machine'}",
            why="Its conversation continues there: leave out --on.",
        )
    if request.cwd not in (None, session.cwd):
        raise UsageError(
            f"Session {session.id[:8]} ran in {session.cwd}",
            why="Its conversation continues there: leave out --cwd.",
        )
    resumed = msgspec.structs.replace(
        request,
        resumes=session.id,
        runtime=session.runtime,
        cwd=session.cwd,
        host=session.host or LOCAL,
        model=request.model or session.model,
    )
    return resumed, session


def _require_conversation(session: Session) -> None:
    short = session.id[:8]
    if session.ended_at is None:
        raise UsageError(
            f"Session {short} is still {session.state}",
            why="Its conversation can be continued when it has ended.",
            hint=f"af sessions --follow {short}",
        )
    if not session.conversation_id:
        raise UsageError(
            f"Session {short} has no conversation",
            why=f"It ended as {session.state} before {session.runtime} had started one.",
            hint=f"af sessions {short}",
        )
