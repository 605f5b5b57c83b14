"""Connections of strangers: few of them, and not for long.

Whoever is on this machine reaches a loopback port. uvicorn closes a connection that is idle after an answer;
one that never asks, ends no question or reads no answer it would hold for ever. Callers whose token is good
have as long as they need.
"""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any, ClassVar

REQUEST_SECONDS = 20.0  # for the head of a request, however slowly it comes
STRANGER_SECONDS = 60.0  # for the rest of it and the whole answer, unless somebody vouches for the caller
BODY_SECONDS = 60.0  # between two pieces of a known caller's body
MOST_STRANGERS = 128
# asyncio accepts so many before it hands over the first, and some times that before the oldest are closed.
ACCEPTED_AT_ONCE = 32

_CONNECTION = "agent_farm.connection"


def vouch(scope: MutableMapping[str, Any]) -> None:
    """Who sent this request is known."""
    connection = scope.get(_CONNECTION)
    if connection is not None:
        connection.vouched()


def bounded_protocol() -> type[asyncio.Protocol]:
    """uvicorn's own protocol, with the bounds."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    return type("Bounded", (_Bounds, AutoHTTPProtocol), {"strangers": {}})


class _Bounds(asyncio.Protocol):
    strangers: ClassVar[dict[Any, None]]  # in the order in which they came
    app: Any
    cycle: Any
    transport: Any
    loop: asyncio.AbstractEventLoop
    _timer: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        answer = self.app

        async def answer_one(scope: Any, receive: Any, send: Any) -> None:
            scope[_CONNECTION] = self
            await answer(scope, receive, send)

        self.app = answer_one

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._is_strange(REQUEST_SECONDS)

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.transport.get_protocol() is not self:  # a WebSocket by now, which has its own bounds
            self._is_known(None)
        elif self.cycle is not before:
            self._is_strange(STRANGER_SECONDS)
        elif self.cycle is None or self in self.strangers:
            return  # the time for it runs
        elif self.cycle.response_complete:
            self._is_strange(REQUEST_SECONDS)  # the beginning of another request
        else:
            self.vouched()

    def vouched(self) -> None:
        self._is_known(BODY_SECONDS if self.cycle.more_body else None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_known(None)
        super().connection_lost(exc)

    def _is_strange(self, seconds: float) -> None:
        self._is_known(seconds)
        self.strangers[self] = None
        if len(self.strangers) > MOST_STRANGERS:  # who has come last is the likeliest to ask
            next(iter(self.strangers))._end()

    def _is_known(self, seconds: float | None) -> None:
        self.strangers.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._end)

    def _end(self) -> None:
        """Also one that is closing, and whose last words nobody reads."""
        self.strangers.pop(self, None)
        self.transport.abort()
