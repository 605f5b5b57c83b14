"""What the page asks of headless sessions: verbs like those of the table, of the butlers of this server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Annotated, Any, TypeVar

from msgspec import Meta

from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.operations.operation import Answer, Context, Operation, Request, only, single
from agent_farm.runtimes.base import Permissions
from agent_farm.server.other_butlers import start_as, stop_any
from agent_farm.server.usage_over_time import BUCKETS, usage_over_time
from agent_farm.sessions.running import RunningButler
from agent_farm.sessions.session import SessionRequest

T = TypeVar("T")

_EARLIEST, _LATEST = 60, 400 * 86400
SessionId = Annotated[str, Meta(description="Id of a session, or a prefix that only one has")]
ButlerName = Annotated[str | None, Meta(description="Whose it is; default: the farm's own")]


class Sessions(Request):
    state: Annotated[tuple[str, ...], Meta(description="Only in these states")] = ()
    source: Annotated[str | None, Meta(description="Only of this trigger source, as in schedule:daily")] = (
        None
    )
    butler: Annotated[str | None, Meta(description="Only of this butler")] = None
    since: Annotated[float | None, Meta(description="Only created since, in seconds since 1970")] = None
    limit: Annotated[int, Meta(ge=1, le=10000, description="The newest so many")] = 100


class FoundSessions(Answer):
    sessions: tuple[dict[str, Any], ...]


class OneSession(Request):
    id: SessionId


class FoundSession(Answer):
    session: dict[str, Any]


class Usage(Request):
    seconds: Annotated[float, Meta(ge=_EARLIEST, le=_LATEST, description="How far back")] = 86400.0


class UsageOverTime(Answer):
    seconds: float
    buckets: tuple[dict[str, Any], ...]


class Trigger(Request):
    prompt: Annotated[str, Meta(description="What it is asked")]
    context: Annotated[str | None, Meta(description="Put before the prompt")] = None
    max_turns: Annotated[int, Meta(ge=1, le=1000, description="Turns of the model at most")] = 20
    runtime: Annotated[str | None, Meta(description="Default: the butler's own")] = None
    model: Annotated[str | None, Meta(description="Default: the runtime's own")] = None
    permissions: Annotated[Permissions | None, Meta(description="Default: the butler's own")] = None
    resume: Annotated[str | None, Meta(description="Go on with the conversation of this session")] = None


class Started(Answer):
    session_id: str


def session_verbs(running: RunningButler) -> tuple[Operation[Any, Any], ...]:
    def find(context: Context, asked: Sessions) -> FoundSessions:
        chosen = {"butler": asked.butler, "states": asked.state, "source": asked.source}
        found = running.sessions.find(**chosen, since=asked.since, limit=asked.limit)  # type: ignore[arg-type]
        return FoundSessions(tuple(found))

    def get(context: Context, asked: OneSession) -> FoundSession:
        return FoundSession(running.sessions.get(asked.id))

    def sum_up(context: Context, asked: Usage) -> UsageOverTime:
        now, seconds = time.time(), asked.seconds
        sums = running.sessions.usage(since=now - seconds, span=seconds / BUCKETS)
        buckets = usage_over_time(sums, now=now, seconds=seconds, count=BUCKETS)
        return UsageOverTime(seconds, tuple(buckets))

    def trigger(context: Context, asked: Trigger) -> Started:
        return start(
            running,
            None,
            SessionRequest(
                prompt=_require_prompt(asked.prompt),
                context=asked.context,
                max_turns=asked.max_turns,
                runtime=asked.runtime,
                model=asked.model,
                permissions=asked.permissions,
                resumes=asked.resume,
            ),
        )

    def stop(context: Context, asked: OneSession) -> FoundSession:
        return FoundSession(wait_for(running, stop_any(running, asked.id, "the dashboard")))

    return (
        reads("sessions", "List headless sessions, the newest first", Sessions, FoundSessions, find),
        reads(
            "show_session",
            "Show one session whole, with its tool calls",
            OneSession,
            FoundSession,
            get,
        ),
        reads("usage", "Sum up sessions, tokens and cost over time", Usage, UsageOverTime, sum_up),
        changes("trigger_session", "Hand a prompt to the farm's server", Trigger, Started, trigger),
        changes("stop_session", "End a session and all that it started", OneSession, FoundSession, stop),
    )


def reads(name: str, summary: str, request: Any, answer: Any, run: Any) -> Operation[Any, Any]:
    return Operation(
        name, summary, request, answer, single(run), only, effect="reads", tolerant=True, pool="look"
    )


def changes(name: str, summary: str, request: Any, answer: Any, run: Any) -> Operation[Any, Any]:
    return Operation(name, summary, request, answer, single(run), only, effect="changes", tolerant=True)


def start(running: RunningButler, butler: str | None, request: SessionRequest) -> Started:
    started = wait_for(running, start_as(running, butler, request))
    if not isinstance(started, str):
        raise AgentFarmError("The session was not accepted", why=started.error, hint="af sessions")
    return Started(started)


def wait_for(running: RunningButler, work: Coroutine[Any, Any, T]) -> T:
    """From a thread of a verb, what belongs to the server's own loop."""
    return asyncio.run_coroutine_threadsafe(work, running.loop).result()


def _require_prompt(prompt: str) -> str:
    if not prompt.strip():
        raise UsageError("The prompt is empty", hint='af trigger "…"')
    if "\0" in prompt:
        raise UsageError("The prompt contains NUL")
    return prompt
