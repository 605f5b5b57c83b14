"""Spawner: makes triggers into sessions, runs a few at a time, and records each one faithfully."""

from __future__ import annotations

import asyncio
import logging
import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import msgspec

from agent_farm.errors import UsageError
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.headless_run import Interrupted
from agent_farm.runtimes.process import held_by_guards
from agent_farm.runtimes.result import RuntimeResult
from agent_farm.sessions import telemetry
from agent_farm.sessions.butlers import Butler
from agent_farm.sessions.credential_store import CredentialStore
from agent_farm.sessions.database import Database
from agent_farm.sessions.ends import Ends
from agent_farm.sessions.failures import log_failure
from agent_farm.sessions.other_machines import Elsewhere, NewElsewhere, SessionOrder
from agent_farm.sessions.predecessors import SessionsLock
from agent_farm.sessions.records import session_complete, session_create, session_start
from agent_farm.sessions.runner import Endpoint, SessionRunner, cancelled, failed
from agent_farm.sessions.runtime_choice import Choice
from agent_farm.sessions.session import (
    Observer,
    Progress,
    Session,
    SessionRequest,
    SpawnerResult,
    refused,
)
from agent_farm.sessions.waiting_line import PlaceInLine, Queue
from agent_farm.uncancelled import finish, finished_result

_MOST_UNCOUNTED = 10_000

_log = logging.getLogger(__name__)


class Spawner:
    """Runs the sessions of one butler; belongs to one event loop."""

    def __init__(
        self,
        butler: Butler,
        adapter: RuntimeAdapter,
        database: Database,
        endpoint: Endpoint,
        *,
        credentials: CredentialStore | None = None,
        environ: Mapping[str, str] | None = None,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        elsewhere: NewElsewhere | None = None,
    ) -> None:
        source = dict(os.environ if environ is None else environ)
        store = credentials or CredentialStore(database, source)
        self.butler = butler
        self.database = database
        self.queue = Queue(butler.max_concurrent_sessions, butler.max_queued_sessions)
        # sessions that other machines run, and those that home has counted already
        self.uncounted = Queue(_MOST_UNCOUNTED, 0)
        self._new_elsewhere = elsewhere
        self._elsewhere: Elsewhere | None = None
        self._adapter = adapter
        self._runner = SessionRunner(butler, database, endpoint, store, source)
        self._new_id = new_id
        self._lock = SessionsLock(database.path.parent / "locks" / f"sessions-{butler.name}.lock")
        self._tasks: dict[asyncio.Task[SpawnerResult], str] = {}
        self._stopped_by: dict[str, str] = {}
        self._ends = Ends(database, self._acknowledge)

    @property
    def is_busy(self) -> bool:
        """Whether sessions wait or run, or the end of one is still to be recorded."""
        return bool(self._tasks) or self._ends.are_left

    async def trigger(
        self,
        prompt: str,
        context: str | None = None,
        *,
        trigger_source: str = "external",
        max_turns: int = 20,
    ) -> SpawnerResult:
        """Run one session and wait for it; refused at once if it could not be waited for."""
        return await self.run(
            SessionRequest(prompt=prompt, context=context, trigger_source=trigger_source, max_turns=max_turns)
        )

    async def run(
        self,
        request: SessionRequest,
        choice: Choice | None = None,
        observer: Observer = lambda progress: None,
        session_id: str | None = None,
    ) -> SpawnerResult:
        """`trigger` with every option. If cancelled, it cancels the session and waits for its record."""
        request.require_good()
        chosen = choice or Choice(self._adapter, model=request.model or self.butler.model)
        line = self.uncounted if request.host or request.for_home else self.queue
        place = line.admit(request.trigger_source)
        if isinstance(place, str):
            _log.warning("Refused a trigger (%s): %s", request.trigger_source, place)
            return refused(place)
        session = self._chosen(session_id or self._new_id(), request, chosen)
        task = self._begin(session, chosen, place, observer)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._cancel(task)
            await finish(task)
            raise

    def go_on(
        self, session: Session, observer: Observer = lambda progress: None
    ) -> asyncio.Task[SpawnerResult] | None:
        """Follow a session on another machine that an earlier server began; None if none is accepted."""
        place = self.uncounted.admit("external")
        return self._begin(session, None, place, observer) if isinstance(place, PlaceInLine) else None

    def _begin(
        self, session: Session, choice: Choice | None, place: PlaceInLine, observer: Observer
    ) -> asyncio.Task[SpawnerResult]:
        task = asyncio.create_task(self._serve(session, choice, place, observer))
        self._tasks[task] = session.id
        task.add_done_callback(partial(self._forget, place))
        return task

    async def reject(self, request: SessionRequest, reason: str) -> SpawnerResult:
        """Record what was triggered but cannot be started, if nobody waits to be told."""
        new = self._session(
            self._new_id(),
            request,
            runtime=request.runtime or self.butler.runtime or "none",
            model=request.model or self.butler.model,
            trace_id=telemetry.trace_id(),
        )
        created = await session_create(self.database, new)
        end = msgspec.structs.replace(created, state="failed", success=False, error=reason, failure="failed")
        return (await session_complete(self.database, end)).result

    def become(self, butler: Butler) -> None:
        """The butler's file has changed, which applies from the next session on."""
        self.butler = butler
        self._runner = replace(self._runner, butler=butler)
        self.queue.most_waiting = butler.max_queued_sessions

    def stop(self, session_id: str, by: str) -> asyncio.Task[SpawnerResult] | None:
        """Cancel a waiting or running session; returns the task that ends once its record is complete."""
        for task, id in self._tasks.items():
            if id == session_id:
                self._stopped_by.setdefault(id, by)
                self._cancel(task)
                return task
        return None

    def stop_accepting(self) -> None:
        """Later triggers are refused; accepted sessions continue."""
        self.queue.accepting = self.uncounted.accepting = False

    async def drain(self, timeout: float) -> bool:
        """Wait for accepted sessions, then cancel the rest; returns True if none had to be cancelled."""
        self.stop_accepting()
        if self._elsewhere:
            self._elsewhere.leave()
        tasks = set(self._tasks)
        late = (await asyncio.wait(tasks, timeout=timeout))[1] if tasks else set()
        for task in late:
            self._cancel(task)
        if late:
            await asyncio.wait(late)
        await self._ends.write_left()
        return not late

    def _chosen(self, id: str, request: SessionRequest, choice: Choice) -> Session:
        return self._session(
            id,
            request,
            runtime=choice.adapter.name,
            model=choice.model,
            permissions=choice.permissions,
            checkout=str(choice.checkout) if choice.checkout else None,
            cwd=request.cwd or (None if request.host else str(self.butler.directory)),
            home=choice.home or id,
        )

    def _session(self, id: str, request: SessionRequest, **known: str | None) -> Session:
        return Session(**{**msgspec.structs.asdict(request), "id": id, "butler": self.butler.name, **known})

    def _cancel(self, task: asyncio.Task[SpawnerResult]) -> None:
        """Only once, because a second cancellation would interrupt the wait for its processes to end."""
        if not task.cancelling():
            task.cancel()

    def _forget(self, place: PlaceInLine, task: asyncio.Task[SpawnerResult]) -> None:
        """Also called for a task that was cancelled before it began."""
        self._stopped_by.pop(self._tasks.pop(task, ""), None)
        place.leave()

    async def _serve(
        self, session: Session, choice: Choice | None, place: PlaceInLine, observer: Observer
    ) -> SpawnerResult:
        """From acceptance to the completed record; swallows the cancellation that ends it."""
        with telemetry.span(
            "butler.trigger",
            butler=self.butler.name,
            trigger_source=session.trigger_source,
            session_id=session.id,
        ):
            if choice is not None:
                session = msgspec.structs.replace(session, trace_id=telemetry.trace_id())
            creating = asyncio.create_task(self._create(session, place, observer))
            try:
                end = await self._run(creating, choice, place, observer)
            except (asyncio.CancelledError, Exception) as error:
                await finish(creating)
                end = self._end_by(creating.result(), error)  # what is not recorded cannot be completed
            try:
                if end.state == "running":  # it runs elsewhere, and this server ends
                    return replace(end.result, success=False, error=f"It continues on {end.host}")
                return await finished_result(self._complete(end, observer))
            finally:
                place.leave()  # not before the record is complete

    async def _create(self, session: Session, place: PlaceInLine, observer: Observer) -> Session:
        if session.created_at is not None:
            return session
        waiting = 0 if place.has_slot else self.queue.waiting
        created = await session_create(self.database, session)
        observer(Progress(session.id, "queued", {"waiting": waiting}))
        return created

    async def _run(
        self, creating: asyncio.Task[Session], choice: Choice | None, place: PlaceInLine, observer: Observer
    ) -> Session:
        await place.turn.wait()
        session = await asyncio.shield(creating)
        if choice is None:
            return await self._others().go_on(session, observer)
        if session.host is not None:
            order = await self.database.run(self._order, session, choice)
            return await self._others().run(session, order, observer)
        async with self._lock.held() as descriptor:
            await session_start(self.database, session.id)
            observer(Progress(session.id, "running", {"runtime": session.runtime}))
            with held_by_guards(descriptor):
                return await self._runner.run(session, choice)

    def _others(self) -> Elsewhere:
        if self._elsewhere is None:
            if self._new_elsewhere is None:
                raise UsageError("This program cannot reach other machines", hint="af run --on local …")
            self._elsewhere = self._new_elsewhere()
        return self._elsewhere

    def _order(self, session: Session, choice: Choice) -> SessionOrder:
        named = None if self.butler.is_packaged else self.butler.name
        timeout = session.timeout or self.butler.session_timeout
        return SessionOrder(named, self._runner.keys(session, choice), choice.agreed, timeout)

    async def _complete(self, session: Session, observer: Observer) -> SpawnerResult:
        ended = await self._ends.write(session)
        observer(Progress(session.id, "ended", {"state": ended.state}))
        return ended.result

    def _acknowledge(self, session: Session) -> None:
        if session.host is not None and self._elsewhere is not None:
            self._elsewhere.recorded(session)

    def _end_by(self, session: Session, error: BaseException) -> Session:
        if isinstance(error, Exception):
            log_failure(_log, "A session", error)
            return failed(session, error)
        away = "the caller went away" if self.queue.accepting else "the butler shut down"
        by = self._stopped_by.get(session.id)
        partial = error.partial if isinstance(error, Interrupted) else RuntimeResult()
        return cancelled(session, partial, f"Cancelled: {f'stopped by {by}' if by else away}")
