"""Who is told how far a headless run has come, while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from agent_farm.runtimes.result import RuntimeResult

OnProgress = Callable[[RuntimeResult], None]

_listener: ContextVar[OnProgress | None] = ContextVar("listener", default=None)


@contextmanager
def telling(listener: OnProgress | None) -> Iterator[None]:
    """Whatever run goes on inside, however deep, tells `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def listener() -> OnProgress | None:
    return _listener.get()
