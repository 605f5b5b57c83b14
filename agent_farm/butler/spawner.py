"""Spawner: triggers become sessions, a few at a time, each with a record that tells the truth."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from agent_farm.butler import telemetry
from agent_farm.butler.admission import Admission
from agent_farm.butler.credentials import CredentialStore
from agent_farm.butler.database import Database
from agent_farm.butler.identity import Butler
from agent_farm.butler.order import Endpoint, Observer, Progress, RunOptions, SessionOrder
from agent_farm.butler.ownership import Ownership
from agent_farm.butler.result import SpawnerResult, refused
from agent_farm.butler.session_run import SessionRunner
from agent_farm.butler.sessions import (
    Completion,
    NewSession,
    session_complete,
    session_create,
    session_start,
)
from agent_farm.butler.sources import require_trigger_source
from agent_farm.errors import UsageError
from agent_farm.runtimes.base import RuntimeAdapter

T = TypeVar("T")


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
        self.admission = Admission(butler.max_concurrent_sessions, butler.max_queued_sessions)
        self._adapter = adapter
        self._options = options or RunOptions()
        self._runner = SessionRunner(butler, database, endpoint, store, source)
        self._owner = Ownership(database.path.parent / "locks")
        self._new_id = new_id
        self._tasks: set[asyncio.Task[SpawnerResult]] = set()

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
        if reason := self.admission.refusal(trigger_source):
            _logger().warning("Refused a trigger (%s): %s", trigger_source, reason)
            return refused(reason)
        order = self._order(prompt, context, trigger_source, max_turns, options or self._options)
        self.admission.enter()
        task = asyncio.create_task(self._serve(order, observer or (lambda progress: None)))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            await _finished(task)
            raise

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
        self._owner.release()

    def _order(
        self, prompt: str, context: str | None, source: str, max_turns: int, options: RunOptions
    ) -> SessionOrder:
        return SessionOrder(
            session_id=options.session_id or self._new_id(),
            prompt=prompt,
            context=context,
            trigger_source=source,
            max_turns=max_turns,
            adapter=options.adapter or self._adapter,
            model=options.model or self.butler.model,
            cwd=options.cwd or self.butler.directory,
            options=options,
        )

    def _ended(self, task: asyncio.Task[SpawnerResult]) -> None:
        """Also of a task that was cancelled before it began."""
        self._tasks.discard(task)
        self.admission.leave()

    async def _serve(self, order: SessionOrder, observer: Observer) -> SpawnerResult:
        """From acceptance to the completed record; swallows the cancellation that ends it."""
        with telemetry.span(
            "butler.trigger",
            butler=self.butler.name,
            trigger_source=order.trigger_source,
            session_id=order.session_id,
        ):
            trace = telemetry.current_trace()
            recorded = asyncio.create_task(self._create(order, trace, observer))
            try:
                async with self.admission.slot():
                    return await self._run(order, recorded, trace, observer)
            except asyncio.CancelledError:
                return await self._end_cancelled(order, recorded, trace, observer)

    async def _create(self, order: SessionOrder, trace: telemetry.Trace | None, observer: Observer) -> None:
        new = NewSession(
            id=order.session_id,
            butler=self.butler.name,
            owner=self._owner.id,
            trigger_source=order.trigger_source,
            prompt=order.prompt,
            context=order.context,
            runtime=order.adapter.name,
            model=order.model,
            cwd=str(order.cwd),
            max_turns=order.max_turns,
            parent=order.options.parent,
            trace_id=trace.trace_id if trace else None,
        )
        await session_create(self.database, new)
        observer(Progress(order.session_id, "queued", {"waiting": self.admission.waiting}))

    async def _run(
        self,
        order: SessionOrder,
        recorded: asyncio.Task[None],
        trace: telemetry.Trace | None,
        observer: Observer,
    ) -> SpawnerResult:
        await asyncio.shield(recorded)
        await session_start(self.database, order.session_id)
        observer(Progress(order.session_id, "running", {"runtime": order.adapter.name}))
        completion = await self._runner.run(order)
        return await _finished_result(self._complete(order, completion, trace, observer))

    async def _end_cancelled(
        self,
        order: SessionOrder,
        recorded: asyncio.Task[None],
        trace: telemetry.Trace | None,
        observer: Observer,
    ) -> SpawnerResult:
        await _finished(recorded)
        if recorded.exception():
            raise recorded.exception() or AssertionError
        reason = "the caller went away" if self.admission.accepting else "the butler shut down"
        end = Completion(state="cancelled", success=False, error=f"Cancelled: {reason}")
        return await _finished_result(self._complete(order, end, trace, observer))

    async def _complete(
        self, order: SessionOrder, end: Completion, trace: telemetry.Trace | None, observer: Observer
    ) -> SpawnerResult:
        calls = await session_complete(self.database, order.session_id, end)
        observer(Progress(order.session_id, "ended", {"state": end.state}))
        return SpawnerResult(
            output=end.output,
            tool_calls=calls,
            success=end.success,
            error=end.error,
            session_id=order.session_id,
            conversation_id=end.conversation_id,
            duration=end.duration or 0.0,
            input_tokens=end.input_tokens,
            output_tokens=end.output_tokens,
            cost=end.cost,
            trace_id=trace.trace_id if trace else None,
        )


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


async def _finished(task: asyncio.Task[Any]) -> None:
    """Until `task` is done, whatever it came to; a further cancellation does not cut its record short."""
    while not task.done():
        with suppress(asyncio.CancelledError, Exception):
            await asyncio.shield(task)


async def _finished_result(work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.create_task(work)
    await _finished(task)
    return task.result()


def _logger() -> Any:
    import logging

    return logging.getLogger(__name__)
