"""Connections of which nothing has come yet, or half a request: few of them, and not for long.

Whoever is on this machine reaches a loopback port. uvicorn closes a connection that is idle after an
answer; one that never asks, or never ends its question, it would hold for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

REQUEST_SECONDS = 20.0  # for the head of a request, however slowly it comes
BODY_SECONDS = 60.0  # between two pieces of a body
MOST_UNASKED = 128


def bounded_protocol() -> Callable[..., asyncio.Protocol]:
    """uvicorn's own protocol, with the bounds."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    unasked: dict[Any, None] = {}  # in the order in which they came

    class Bounded(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            unasked[self] = None
            self._wait(REQUEST_SECONDS)
            if len(unasked) > MOST_UNASKED:  # who has come last is the likeliest to ask
                next(iter(unasked))._end()

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            super().data_received(data)
            if (
                self.transport.get_protocol() is not self
            ):  # it has become a WebSocket, which has its own bounds
                unasked.pop(self, None)
                self._wait(None)
            elif self.cycle is not None and (before is not self.cycle or not before.response_complete):
                unasked.pop(self, None)
                self._wait(BODY_SECONDS if self.cycle.more_body else None)
            elif self not in unasked and self.cycle is not None and self.cycle.response_complete:
                unasked[self] = None  # the beginning of another request
                self._wait(REQUEST_SECONDS)

        def connection_lost(self, exc: Exception | None) -> None:
            unasked.pop(self, None)
            self._wait(None)
            super().connection_lost(exc)

        def _wait(self, seconds: float | None) -> None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None if seconds is None else self.loop.call_later(seconds, self._end)

        def _end(self) -> None:
            unasked.pop(self, None)
            if not self.transport.is_closing():
                self.transport.abort()

    return Bounded
