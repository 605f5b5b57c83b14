"""Limits the connections of unknown callers: how many there may be, and for how long.

Anybody on this machine can reach a loopback port. uvicorn only closes connections that are idle after an
answer; one that sends nothing, never completes its request, or does not read its answer, would stay for ever.
Callers with a good token have as long as they need.
"""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any, ClassVar

REQUEST_SECONDS = 20.0  # for the head of a request, however slowly it arrives
STRANGER_SECONDS = 60.0  # for the rest of it and the whole answer, unless the caller is known
BODY_SECONDS = 60.0  # between two pieces of a known caller's body
MOST_STRANGERS = 128
# asyncio accepts this many before it hands over the first, and sometimes once more before the oldest are
# closed.
ACCEPTED_AT_ONCE = 32

_CONNECTION = "agent_farm.connection"


def vouch(scope: MutableMapping[str, Any]) -> None:
    """Record that the sender of this request is known."""
    connection = scope.get(_CONNECTION)
    if connection is not None:
        connection.vouched()


def bounded_protocol() -> type[asyncio.Protocol]:
    """uvicorn's own protocol, with these limits."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    return type("Bounded", (_Bounds, AutoHTTPProtocol), {"strangers": {}})


class _Bounds(asyncio.Protocol):
    strangers: ClassVar[dict[Any, None]]  # in the order in which they connected
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
        if self.transport.get_protocol() is not self:  # now a WebSocket, with its own limits
            self._is_known(None)
        elif self.cycle is not before:
            self._is_strange(STRANGER_SECONDS)
        elif self.cycle is None or self in self.strangers:
            return  # its time is running already
        elif self.cycle.response_complete:
            self._is_strange(REQUEST_SECONDS)  # another request begins
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
        if len(self.strangers) > MOST_STRANGERS:  # the newest one is the most likely to send a request
            next(iter(self.strangers))._end()

    def _is_known(self, seconds: float | None) -> None:
        self.strangers.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._end)

    def _end(self) -> None:
        """Abort even if it is closing, and nobody reads what is left."""
        self.strangers.pop(self, None)
        self.transport.abort()
