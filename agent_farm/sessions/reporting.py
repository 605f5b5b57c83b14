"""What a running session has come to, written down now and then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from agent_farm.errors import AgentFarmError
from agent_farm.runtimes.result import OnProgress, RuntimeResult, ToolCall
from agent_farm.sessions.failures import log_failure
from agent_farm.sessions.session_record import SessionRecord

EVERY_SECONDS = 0.7
KEPT_CHARACTERS = 2000  # of a result, until the session has ended


@asynccontextmanager
async def reporting(record: SessionRecord) -> AsyncIterator[OnProgress]:
    """The newest word is written, at most every EVERY_SECONDS; what comes between is in it."""
    newest: list[RuntimeResult] = []
    came = asyncio.Event()

    def take(result: RuntimeResult) -> None:
        newest[:] = [result]
        came.set()

    async def write() -> None:
        while True:
            await came.wait()
            came.clear()
            told = newest[0]
            try:
                await record.told(replace(told, tool_calls=tuple(map(_shortened, told.tool_calls))))
            except AgentFarmError as error:
                log_failure(_logger(), record.order.session_id, error)
            await asyncio.sleep(EVERY_SECONDS)

    writer = asyncio.create_task(write())
    try:
        yield take
    finally:
        writer.cancel()
        with suppress(asyncio.CancelledError):
            await writer


def _shortened(call: ToolCall) -> ToolCall:
    return replace(call, result=call.result[:KEPT_CHARACTERS]) if call.result else call


def _logger() -> object:
    import logging

    return logging.getLogger(__name__)
