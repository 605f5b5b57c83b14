"""Spawner: triggers become sessions, a few at a time, each with a record that tells the truth."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.interruption import Interrupted
from agent_farm.runtimes.process import held_by_guards
from agent_farm.runtimes.result import RuntimeResult, failure_of
from agent_farm.sessions import telemetry
from agent_farm.sessions.admission import Admission, Place
from agent_farm.sessions.butlers import Butler
from agent_farm.sessions.credentials import CredentialStore
from agent_farm.sessions.database import Database
from agent_farm.sessions.failures import log_failure, reason_of
from agent_farm.sessions.finishing import finish, finished_result
from agent_farm.sessions.order import Endpoint, Observer, RunOptions, SessionOrder
from agent_farm.sessions.ownership import Ownership
from agent_farm.sessions.records import (
    Completion,
    NewSession,
    asked_to_stop,
    session_complete,
    session_create,
)
from agent_farm.sessions.result import SpawnerResult, refused
from agent_farm.sessions.session_record import SessionRecord
from agent_farm.sessions.session_run import SessionRunner, cancelled_completion
from agent_farm.sessions.slots import Slots
from agent_farm.sessions.trigger_sources import require_trigger_source

STOP_LOOK_SECONDS = 0.3


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
        options: RunOptions | None = None,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        source = dict(os.environ if environ is None else environ)
        store = credentials or CredentialStore(database, source)
        self.butler = butler
        self.database = database
        locks = database.path.parent / "locks"
        slots = Slots(locks, butler.name, butler.max_concurrent_sessions)
        self.admission = Admission(slots, butler.max_queued_sessions)
        self._adapter = adapter
        self._options = options or RunOptions()
        self._runner = SessionRunner(butler, database, endpoint, store, source)
        self._owner = Ownership(locks)
        self._new_id = new_id
        self._tasks: dict[asyncio.Task[SpawnerResult], str] = {}
        self._stopped: dict[str, str] = {}
        self._watch: asyncio.Task[None] | None = None

    async def trigger(
        self,
        prompt: str,
        context: str | None = None,
        *,
        trigger_source: str = "external",
        max_turns: int = 20,
        options: RunOptions | None = None,
        observer: Observer | None = None,
    ) -> SpawnerResult:
        """Run one session and wait for it; refused at once when it could not be waited for.

        A cancelled caller cancels its session, whose record is completed first.
        """
        require_trigger_source(trigger_source)
        _require_text("prompt", prompt)
        _require_text("context", context or "-")
        if max_turns < 1:
            raise UsageError(f"max_turns is {max_turns}; at least one turn is needed")
        order = self._order(prompt, context, trigger_source, max_turns, options or self._options)
        place = self.admission.admit(trigger_source)
        if isinstance(place, str):
            _logger().warning("Refused a trigger (%s): %s", trigger_source, place)
            return refused(place)
        task = asyncio.create_task(self._serve(order, place, observer or (lambda progress: None)))
        self._tasks[task] = order.session_id
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._look_for_stops())
        task.add_done_callback(partial(self._ended, place))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            await finish(task)
            raise

    async def reject(self, prompt: str, trigger_source: str, reason: str) -> SpawnerResult:
        """Put on record what was triggered and cannot be started, where nobody waits to be told."""
        trace = telemetry.current_trace()
        new = NewSession(
            id=self._new_id(),
            butler=self.butler.name,
            owner=self._owner.id,
            trigger_source=trigger_source,
            prompt=prompt,
            runtime=self.butler.runtime or "none",
            model=self.butler.model,
            trace_id=trace.trace_id if trace else None,
        )
        end = Completion("failed", success=False, error=reason, failure="failed")
        await session_create(self.database, new)
        await session_complete(self.database, new.id, end)
        return SpawnerResult(
            success=False,
            error=reason,
            session_id=new.id,
            trace_id=new.trace_id,
            failure=end.failure,
            state=end.state,
        )

    def become(self, butler: Butler) -> None:
        """Its file says something else now: that holds from the next session on."""
        self.butler = butler
        self._runner = replace(self._runner, butler=butler)
        self.admission.queue = butler.max_queued_sessions

    def stop_accepting(self) -> None:
        """Every later trigger is refused; what was accepted goes on."""
        self.admission.accepting = False

    async def drain(self, timeout: float) -> bool:
        """Wait for what was accepted, then cancel the rest; True when nothing had to be cancelled."""
        self.stop_accepting()
        tasks = set(self._tasks)
        if not tasks:
            return True
        _, late = await asyncio.wait(tasks, timeout=timeout)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
        return not late

    def close(self) -> None:
        """Give up ownership of the records; call it when nothing runs any more."""
        if self._watch is not None:
            self._watch.cancel()
        self._owner.release()

    async def _look_for_stops(self) -> None:
        """While something runs: whoever wants it to end says so in the database, from any process."""
        while self._tasks:
            await asyncio.sleep(STOP_LOOK_SECONDS)
            if not self._tasks:
                return
            try:
                asked = await self.database.run(asked_to_stop, self.database, self._owner.id)
            except AgentFarmError as error:
                log_failure(_logger(), "Looking for sessions to stop", error)
                continue
            for task, id in list(self._tasks.items()):
                if id in asked and id not in self._stopped:
                    self._stopped[id] = f"stopped by {asked[id]}"
                    task.cancel()

    def _order(
        self, prompt: str, context: str | None, source: str, max_turns: int, options: RunOptions
    ) -> SessionOrder:
        id, resumed = options.session_id or self._new_id(), options.resumed or {}
        return SessionOrder(
            session_id=id,
            prompt=prompt,
            context=context,
            trigger_source=source,
            max_turns=max_turns,
            adapter=options.adapter or self._adapter,
            model=options.model or (None if options.adapter else self.butler.model),
            cwd=options.cwd or self.butler.directory,
            options=options,
            home=resumed.get("home") or id,
        )

    def _ended(self, place: Place, task: asyncio.Task[SpawnerResult]) -> None:
        """Also of a task that was cancelled before it began."""
        self._stopped.pop(self._tasks.pop(task, ""), None)
        place.leave()

    async def _serve(self, order: SessionOrder, place: Place, observer: Observer) -> SpawnerResult:
        """From acceptance to the completed record; swallows the cancellation that ends it."""
        with telemetry.span(
            "butler.trigger",
            butler=self.butler.name,
            trigger_source=order.trigger_source,
            session_id=order.session_id,
        ):
            record = SessionRecord(
                self.database, order, self.butler.name, self._owner.id, telemetry.current_trace(), observer
            )
            waiting = 0 if place.slot else self.admission.waiting
            created = asyncio.create_task(record.create(waiting))
            try:
                return await self._run(order, place, created, record)
            except (asyncio.CancelledError, Exception) as error:
                await finish(created)
                created.result()  # what is not on record cannot be completed
                return await finished_result(record.complete(self._end_by(order.session_id, error)))
            finally:
                place.leave()  # not before the record is complete

    async def _run(
        self, order: SessionOrder, place: Place, created: asyncio.Task[None], record: SessionRecord
    ) -> SpawnerResult:
        slot = await place.reach_slot()
        await asyncio.shield(created)
        await record.start()
        with held_by_guards(slot.descriptor):
            completion = await self._runner.run(order, record)
        return await finished_result(record.complete(completion))

    def _end_by(self, id: str, error: BaseException) -> Completion:
        if isinstance(error, Exception):
            log_failure(_logger(), "A session", error)
            kind = failure_of(error).kind
            return Completion("failed", success=False, error=reason_of(error), failure=kind)
        away = "the caller went away" if self.admission.accepting else "the butler shut down"
        reason = self._stopped.get(id, away)
        partial = error.partial if isinstance(error, Interrupted) else RuntimeResult()
        return cancelled_completion(partial, f"Cancelled: {reason}")


def _require_text(what: str, text: str) -> None:
    """What a record cannot hold, or a program's arguments and input cannot carry, never starts."""
    if not text.strip():
        raise UsageError(f"The {what} is empty")
    if "\0" in text:
        raise UsageError(f"The {what} contains NUL")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"The {what} is not UTF-8 text", why=str(error)) from error


def _logger() -> Any:
    import logging

    return logging.getLogger(__name__)
