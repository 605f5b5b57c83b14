"""Signals that end this program, turned into exceptions, so that everything is put away on the way out."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_ALL = (signal.SIGINT, *_ENDING)
Handler = Callable[[int, FrameType | None], object]


@contextmanager
def ending_cleanly() -> Iterator[None]:
    """SIGTERM and SIGHUP raise SystemExit(128 + number); an ignored one (nohup) stays ignored."""
    with _handlers({number: _exit for number in _ENDING if signal.getsignal(number) != signal.SIG_IGN}):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """A second Ctrl-C does not stop the putting away."""
    with _handlers(dict.fromkeys(_ALL, _nothing)):
        yield


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
    """Wait until everything is put away."""
