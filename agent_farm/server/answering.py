"""Carries out an operation for a caller of the server, on threads for operations of its kind."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from agent_farm.errors import TimedOut
from agent_farm.farm.farm import open_farm
from agent_farm.operations.operation import Answer, Context, Operation
from agent_farm.paths import FarmPaths
from agent_farm.server.callers import Caller
from agent_farm.sessions.running_butlers import RunningButlers

LONGEST_WAIT = 600.0
USUAL_WAIT = 60.0  # most clients give up on a call that takes longer
LOOK_SECONDS = 0.3
_AT_ONCE = 8

Tell = Callable[[str], None]
Heard = Callable[[Any], None]
OpenContext = Callable[[Operation[Any, Any]], Context]


def context_for(
    butlers: RunningButlers, caller: Caller, tell: Tell = lambda text: None, *, whole_ids: bool = False
) -> OpenContext:
    def open_context(operation: Operation[Any, Any]) -> Context:
        place = functools.cache(functools.partial(open_farm, butlers.root))
        if not operation.tolerant:
            place().settings.require_good()
        shell = caller.shell
        return Context(
            place,
            caller.kind,
            caller.id,
            whole_ids=whole_ids,
            tell=tell,
            directory=Path(shell.directory) if shell.directory else None,
            butlers=butlers,
            butler=caller.butler,
            environ=shell.environ,
            inside=shell.session,
        )

    return open_context


async def answer_to(
    operation: Operation[Any, Any], context: Context, request: Any, heard: Heard | None = None
) -> Answer:
    """An expected error is raised. `heard` gets parts on another thread."""
    if operation.serve is not None:
        found: Answer = await operation.serve(context, request)
        return found
    if operation.waits:
        return await _wait(operation, context, request)
    return await _in_thread(operation, context, request, heard)


async def _wait(operation: Operation[Any, Any], context: Context, request: Any) -> Answer:
    """Polls, so that no thread is blocked by the many who may be waiting."""
    seconds = USUAL_WAIT if request.timeout is None else min(request.timeout, LONGEST_WAIT)
    deadline = time.monotonic() + seconds
    look = msgspec.structs.replace(request, timeout=0)
    while True:
        try:
            return await _in_thread(operation, context, look)
        except TimedOut as error:
            if time.monotonic() >= deadline:
                raise TimedOut(f"Not there after {seconds:g} s", evidence=error.evidence) from error
        await asyncio.sleep(LOOK_SECONDS)


async def _in_thread(
    operation: Operation[Any, Any], context: Context, request: Any, heard: Heard | None = None
) -> Answer:
    work = functools.partial(operation.answer_to, context, request, heard)
    loop = asyncio.get_running_loop()
    pool = operation.pool or operation.name
    if _has_fleet(context):
        host = await loop.run_in_executor(_threads("where"), _host, context, request)
        pool = f"{pool} on {host}" if host else pool
    found: Answer = await loop.run_in_executor(_threads(pool), work)
    return found


def _has_fleet(context: Context) -> bool:
    return context.butlers is not None and FarmPaths(context.butlers.root).fleet.exists()


def _host(context: Context, request: Any) -> str | None:
    """The machine that answers; one that hangs then only delays calls to itself."""
    from agent_farm.operations.fleet.elsewhere import host_of

    return host_of(context, request)


@functools.cache
def _threads(pool: str) -> ThreadPoolExecutor:
    """A pool for each kind, so that slow calls only delay their own kind."""
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix=f"call {pool}")
