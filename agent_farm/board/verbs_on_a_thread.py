"""Runs verbs for the board on a thread, so that no key waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import open_farm
from agent_farm.operations.operation import Answer, Context
from agent_farm.operations.requests import read_request
from agent_farm.operations.table import load

T = TypeVar("T")


async def ask(root: Path, verb: str, **fields: Any) -> Any:
    """The verb's answer. Failures, the system's too, are raised as AgentFarmError."""
    operation = load(verb)

    def answered(context: Context) -> Answer:
        answer: Answer = operation.answer_to(context, read_request(operation, fields))
        return answer

    aside = _on_a_loose_thread if operation.effect == "reads" else asyncio.to_thread
    return await aside(partial(_done, root, answered, operation.tolerant))


async def on_a_thread(root: Path, act: Callable[[Context], T], *, tolerant: bool) -> T:
    return await asyncio.to_thread(_done, root, act, tolerant)


async def _on_a_loose_thread(look: Callable[[], T]) -> T:
    """On a thread that nobody waits for at exit: a machine that hangs must not keep the board open."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def tell(found: T | None, error: BaseException | None) -> None:
        if answer.done():
            return  # the caller is gone
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(found)  # type: ignore[arg-type]

    def work() -> None:
        try:
            found, error = look(), None
        except BaseException as problem:
            found, error = None, problem
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(tell, found, error)

    Thread(target=work, daemon=True).start()
    return await answer


def _done(root: Path, act: Callable[[Context], T], tolerant: bool) -> T:
    try:
        farm = open_farm(root)
        if not tolerant:
            farm.settings.require_good()
        return act(Context(farm, naming_agrees=True, whole_ids=True, directory=root))
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        raise AgentFarmError(f"{error.strerror or error}{place}") from error
