"""The events for an open page or board, and how far behind it may be."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

MOST_WAITING = 200


@dataclass(frozen=True, slots=True)
class Message:
    """`number` counts up. One without a name says nothing: that the stream goes on."""

    event: str = ""
    number: int = 0
    data: bytes = b""


class Page:
    """One open stream. A page that reads too slowly gets a whole new snapshot instead of a long queue."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Message] = asyncio.Queue(MOST_WAITING)
        self.is_behind = False

    def tell(self, message: Message) -> None:
        try:
            self.queue.put_nowait(message)
        except asyncio.QueueFull:
            self.is_behind = True
