"""Turns signals that end this program into exceptions, so that everything is cleaned up on the way out."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_ALL = (signal.SIGINT, *_ENDING)
Handler = Callable[[int, FrameType | None], object]
T = TypeVar("T")


@contextmanager
def ending_cleanly() -> Iterator[None]:
    """SIGTERM and SIGHUP raise SystemExit(128 + number); an ignored one (nohup) stays ignored."""
    with _handlers(dict.fromkeys(_heeded(), _exit)):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """A second Ctrl-C does not interrupt the cleaning up."""
    with _handlers(dict.fromkeys(_ALL, _nothing)):
        yield


def run_to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Like asyncio.run, but SIGTERM and SIGHUP cancel the work like Ctrl-C, and are raised at its end."""
    import asyncio  # needed only by questions

    received: list[int] = []

    async def run() -> T | None:
        task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()

        def cancel(number: int, frame: FrameType | None) -> None:
            received.append(number)
            loop.call_soon_threadsafe(task.cancel)

        with _handlers(dict.fromkeys(_heeded(), cancel)):
            try:
                return await task
            except asyncio.CancelledError:
                if not received:
                    raise
                return None

    result = asyncio.run(run())
    if received:
        raise SystemExit(128 + received[0])
    return result  # type: ignore[return-value]  # None only of what was ended, or of T itself


def _heeded() -> list[signal.Signals]:
    return [number for number in _ENDING if signal.getsignal(number) != signal.SIG_IGN]


@contextmanager
def _handlers(handlers: dict[signal.Signals, Handler]) -> Iterator[None]:
    """Only the main thread has signal handlers; elsewhere this changes nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _nothing(number: int, frame: FrameType | None) -> None:
    """Ignores the signal until everything is cleaned up."""
