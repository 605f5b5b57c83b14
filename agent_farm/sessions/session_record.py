"""SessionRecord: one session as it is written down, and told to whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass

from agent_farm.runtimes.result import RuntimeResult
from agent_farm.sessions.database import Database
from agent_farm.sessions.order import Observer, Progress, SessionOrder
from agent_farm.sessions.records import (
    Completion,
    NewSession,
    call_json,
    session_complete,
    session_create,
    session_progress,
    session_start,
)
from agent_farm.sessions.result import SpawnerResult
from agent_farm.sessions.telemetry import Trace


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """Created, started and completed, once each and in this order; one that never ran is not started."""

    database: Database
    order: SessionOrder
    butler: str
    owner: str
    trace: Trace | None
    observer: Observer

    async def create(self, waiting: int) -> None:
        order = self.order
        new = NewSession(
            id=order.session_id,
            butler=self.butler,
            owner=self.owner,
            trigger_source=order.trigger_source,
            prompt=order.whole_prompt,
            context=order.context,
            runtime=order.adapter.name,
            model=order.model,
            cwd=str(order.cwd),
            max_turns=order.max_turns,
            parent=order.options.parent,
            resumes=order.options.resumed["id"] if order.options.resumed else None,
            home=order.home,
            trace_id=self.trace.trace_id if self.trace else None,
        )
        await session_create(self.database, new)
        self.observer(Progress(order.session_id, "queued", {"waiting": waiting}))

    async def start(self) -> None:
        await session_start(self.database, self.order.session_id)
        self.observer(Progress(self.order.session_id, "running", {"runtime": self.order.adapter.name}))

    async def told(self, so_far: RuntimeResult) -> None:
        """What it has come to, for who looks before it has ended."""
        calls = [call_json(call) for call in so_far.tool_calls]
        await session_progress(self.database, self.order.session_id, so_far.output, calls)

    async def complete(self, end: Completion) -> SpawnerResult:
        ended = await session_complete(self.database, self.order.session_id, end)
        self.observer(Progress(self.order.session_id, "ended", {"state": end.state}))
        return SpawnerResult(
            output=end.output,
            tool_calls=ended.tool_calls,
            success=end.success,
            error=end.error,
            session_id=self.order.session_id,
            conversation_id=end.conversation_id,
            duration=ended.duration or 0.0,
            input_tokens=end.input_tokens,
            output_tokens=end.output_tokens,
            cost=end.cost,
            failure=end.failure,
            state=end.state,
            trace_id=self.trace.trace_id if self.trace else None,
        )
