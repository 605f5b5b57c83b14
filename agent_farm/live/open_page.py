"""The queue of events for one open page or board, and how far it may lag."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

MOST_WAITING = 200


@dataclass(frozen=True, slots=True)
class Message:
    """`number` counts up. A message without an event name only keeps the stream alive."""

    event: str = ""
    number: int = 0
    data: bytes = b""


class Page:
    """One open stream. A page that reads too slowly gets a new snapshot instead of a long queue."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Message] = asyncio.Queue(MOST_WAITING)
        self.is_behind = False

    def tell(self, message: Message) -> None:
        try:
            self.queue.put_nowait(message)
        except asyncio.QueueFull:
            self.is_behind = True
