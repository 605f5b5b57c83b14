"""`trigger`, `tick`: headless sessions, which the farm's server runs; `af run` attaches to one."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from agent_farm.errors import AgentFarmError, TimedOut, UsageError
from agent_farm.farm.farm import open_farm
from agent_farm.operations.builders import Yes
from agent_farm.operations.declare import served
from agent_farm.operations.operation import SESSIONS, Answer, Context, Nothing, Request
from agent_farm.operations.served import ask, database_of, running, whose
from agent_farm.operations.sessions import SessionsStop, SessionsStopped, log_of, require_own, sessions_stop
from agent_farm.sessions.butlers import load_butler
from agent_farm.sessions.credential_store import CredentialStore
from agent_farm.sessions.runtime_choice import agree_to_session
from agent_farm.sessions.session import Progress, SessionRequest, SessionWish, SpawnerResult

if TYPE_CHECKING:
    from agent_farm.sessions.running_butler import RunningButler

_UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"


class Trigger(SessionWish, Request, frozen=True, kw_only=True):  # type: ignore[misc]  # both are frozen
    wait: Annotated[bool, Meta(description="Wait for its end; otherwise sessions_get shows it")] = True
    resume: Annotated[
        str | None,
        Meta(description="Continue the conversation of session ID, on its runtime and in its directory"),
    ] = None
    butler: Annotated[str | None, Meta(description="Butler to run as; default: the farm's own")] = None
    source: Annotated[
        Literal["external", "tick", "route"] | None, Meta(description="Trigger source to record")
    ] = None
    on: Annotated[
        str | None,
        Meta(description="Machine of the fleet to run it on, fleet: any, or local; default: sessions.on"),
    ] = None
    for_home: Annotated[
        bool, Meta(description="Requested by the machine that this one belongs to, which has counted it")
    ] = False
    attached: Annotated[bool, Meta(description="Cancel it if the caller goes away")] = False
    new_id: Annotated[
        Annotated[str, Meta(pattern=_UUID)] | None,
        Meta(
            description="Id for the session, for a caller that may have to name it before there is an answer"
        ),
    ] = None
    yes: Yes = False


class Triggered(Answer):
    """`session_id` is null if the session was never accepted. One that ran out of time has the `failure`
    time-limit, and exit code 124."""

    session_id: str | None
    result: Annotated[SpawnerResult | None, Meta(description="Null if it was not waited for")]

    @property
    def exit_code(self) -> int:
        if self.result is None or self.result.success:
            return 0
        return TimedOut.exit_code if self.result.failure == "time-limit" else 1


# A session must not give another more rights than it has: it cannot choose where and how that runs.
_FOR_THE_ARCHITECT = (
    "runtime", "permissions", "cwd", "timeout", "source", "on", "for_home", "attached", "new_id", "yes",
)  # fmt: skip


def _prepare(context: Context, request: Trigger) -> Trigger:
    """Consent is asked for here, because nobody can be asked in the server."""
    asked = session_request(context, request)
    asked.require_good()
    agree_first(context, request, asked)
    return replace(request, new_id=request.new_id or str(uuid.uuid4()))


def _await_end(context: Context, request: Trigger) -> None:
    """If the command is ended, its session ends, and every process that it started."""
    if request.attached and request.new_id:
        with suppress(AgentFarmError):
            ask(context, sessions_stop.name, SessionsStop((request.new_id,)), SessionsStopped)


@served(
    "Run a prompt as a headless session, and wait for its result or only start it",
    prepare=_prepare,
    interrupted=_await_end,
    effect="changes",
    who=SESSIONS,
    outside=True,
    details="Only the architect chooses where and how it runs. A session can only continue sessions that"
    " it triggered itself.",
)
async def trigger(context: Context, request: Trigger) -> Triggered:
    database = running(context).database
    butler, asked = await database.run(_planned, context, request)
    return await start(context, butler, asked, request)


async def start(
    context: Context, butler: RunningButler, asked: SessionRequest, request: Trigger
) -> Triggered:
    """Runs on the server's loop. Unless attached, the session continues when its caller stops waiting: a
    client's time limit says nothing about the work."""
    if not request.wait:
        started = await butler.start(asked, context.environ, request.new_id, agreed=request.yes)
        if isinstance(started, str):
            return Triggered(started, None)
        raise AgentFarmError("The session was not accepted", why=started.error, hint="af sessions")

    def observe(progress: Progress) -> None:
        if text := _told(progress):
            context.tell(text)

    import asyncio  # only needed in the server; a terminal would wait for it

    running = butler.run(asked, context.environ, observe, request.new_id, agreed=request.yes)
    work = asyncio.ensure_future(running)
    result = await (work if request.attached else asyncio.shield(work))
    return Triggered(result.session_id, result)


def _told(progress: Progress) -> str | None:
    detail = progress.detail
    match progress.event:
        case "queued":
            waits = f" waits, {detail['waiting']} in the queue" if detail.get("waiting") else ""
            return f"session {progress.session_id}{waits}"
        case "running":
            return f"{detail['runtime']} runs" + (f" on {detail['host']}" if detail.get("host") else "")
        case "tool":
            return f"  {detail['name']}{' failed' if detail.get('failed') else ''}"
    return None


def _planned(context: Context, request: Trigger) -> tuple[RunningButler, SessionRequest]:
    if context.caller == "session":
        _require_modest(context, request)
    butler = running(context).of(_butler(context, request))
    asked = session_request(context, request)
    if request.yes:
        agree_first(context, request, asked)
    return butler, asked


def _require_modest(context: Context, request: Trigger) -> None:
    chosen = [name for name in _FOR_THE_ARCHITECT if getattr(request, name)]
    if chosen:
        raise UsageError(
            f"Only the architect can choose {', '.join(chosen)}",
            why="A session could extend its own permissions with it.",
        )
    if request.resume is not None:
        require_own(context, request.resume)


def _butler(context: Context, request: Trigger) -> str | None:
    """The butler of the session to continue, unless another one is named."""
    named = whose(context, request.butler)
    return log_of(context).load(request.resume).butler if request.resume and named is None else named


def session_request(context: Context, request: Trigger) -> SessionRequest:
    parent = context.caller_id if context.caller == "session" else _asking_session(context)
    wish = {name: getattr(request, name) for name in SessionWish.__struct_fields__}
    return SessionRequest(
        **wish,
        trigger_source=request.source or ("trigger" if parent and request.wait else "external"),
        parent=parent,
        checkout=_checkout(context),
        resumes=request.resume,
        host=request.on,
        for_home=request.for_home,
    )


def _asking_session(context: Context) -> str | None:
    """The session that this is called from: it holds a slot already, and must not wait for a second one."""
    with suppress(AgentFarmError):
        if context.inside and log_of(context).load(context.inside).state == "running":
            return context.inside
    return None


def _checkout(context: Context) -> str | None:
    """The caller's checkout, if it belongs to this farm."""
    with suppress(AgentFarmError):
        if context.directory:
            here = open_farm(context.directory)
            return str(here.repository.checkout) if here.root == context.farm.root else None
    return None


def agree_first(context: Context, request: Trigger, asked: SessionRequest) -> None:
    root = context.farm.root
    agree_to_session(
        root,
        load_butler(root, _butler(context, request)),
        CredentialStore(database_of(context), context.environ or os.environ),
        asked,
        yes=request.yes,
        ask=context.ask,
        naming_agrees=context.naming_agrees,
    )


class Fired(Answer):
    fired: Annotated[tuple[str, ...], Meta(description="Names of schedules")]


@served("Fire the schedules that are due now", effect="changes", outside=True)
async def tick(context: Context, request: Nothing) -> Fired:
    return Fired(tuple(await running(context).tick()))
