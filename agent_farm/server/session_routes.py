"""What `af run`, `af trigger` and `af sessions stop` ask: a session as it goes on, or its end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.server.answers import refuse
from agent_farm.server.auth import caller_of
from agent_farm.sessions.running import RunningButler
from agent_farm.sessions.session import Progress, SessionRequest, refused
from agent_farm.sessions.trigger_sources import is_callers_source

Event = dict[str, Any]

_UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"


class _Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`session_id`: chosen by a caller who may have to name the session before it has an answer."""

    request: SessionRequest
    attached: bool = False
    session_id: Annotated[str, Meta(pattern=_UUID)] | None = None


class _Stop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    session_id: str
    by: str


def session_routes(running: RunningButler) -> list[Route]:
    async def run(request: Request) -> Response:
        caller = caller_of(request.scope)
        if caller is None or caller.kind != "architect":
            return _for_the_architect()
        try:
            asked = msgspec.json.decode(await request.body(), type=_Run)
            asked.request.require_good()
        except (msgspec.DecodeError, RecursionError, UsageError) as error:
            return refuse(400, "usage", "This is not a request to run", str(error))
        source = asked.request.trigger_source
        if not is_callers_source(source):
            return refuse(400, "usage", f"{source!r} is not a source that a caller may name")
        events = _events(running, asked, caller.environ)
        return StreamingResponse(events, media_type="application/x-ndjson")

    async def stop(request: Request) -> Response:
        caller = caller_of(request.scope)
        if caller is None or caller.kind != "architect":
            return _for_the_architect()
        try:
            asked = msgspec.json.decode(await request.body(), type=_Stop)
        except (msgspec.DecodeError, RecursionError) as error:
            return refuse(400, "usage", "This is not a request to stop", str(error))
        try:
            answer = {"event": "stopped", "session": await running.stop(asked.session_id, asked.by)}
        except AgentFarmError as error:
            answer = _error_event(error)
        return Response(_line(answer), media_type="application/x-ndjson")

    return [Route("/run", run, methods=["POST"]), Route("/stop", stop, methods=["POST"])]


async def _events(running: RunningButler, asked: _Run, environ: Mapping[str, str]) -> AsyncIterator[bytes]:
    """One JSON object a line: queued, running, tool, …, at last `result` or `error`."""
    queue: asyncio.Queue[Event] = asyncio.Queue()
    task = asyncio.create_task(_run(running, asked, environ, queue))
    try:
        while True:
            event = await queue.get()
            yield _line(event)
            if event["event"] in ("result", "error"):
                return
    finally:
        if asked.attached and not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _run(
    running: RunningButler, asked: _Run, environ: Mapping[str, str], queue: asyncio.Queue[Event]
) -> None:
    def observe(progress: Progress) -> None:
        queue.put_nowait({"event": progress.event, "session_id": progress.session_id, **progress.detail})

    try:
        result = await running.run(asked.request, environ, observe, asked.session_id)
    except AgentFarmError as error:
        queue.put_nowait(_error_event(error))
        return
    except Exception as error:
        queue.put_nowait({"event": "result", "result": refused(str(error)).to_json()})
        raise
    queue.put_nowait({"event": "result", "result": result.to_json()})


def _for_the_architect() -> Response:
    return refuse(403, "foreign", "This is for the architect only")


def _line(event: Mapping[str, Any]) -> bytes:
    return json.dumps(event).encode() + b"\n"


def _error_event(error: AgentFarmError) -> Event:
    return {
        "event": "error",
        "code": error.code,
        "exit_code": error.exit_code,
        "what": error.what,
        "why": error.why,
        "evidence": list(error.evidence),
        "hint": error.hint,
    }
