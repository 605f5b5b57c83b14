"""Decides which sessions run now, which wait, and which are refused at once."""

from __future__ import annotations

import asyncio
from collections import deque


class Queue:
    """`slots` sessions run at a time, in the order they came; up to `most_waiting` more wait."""

    def __init__(self, slots: int, most_waiting: int) -> None:
        self.slots = slots
        self.most_waiting = most_waiting
        self.accepting = True
        self.running = 0
        self._line: deque[PlaceInLine] = deque()

    @property
    def waiting(self) -> int:
        return len(self._line)

    def admit(self, trigger_source: str) -> PlaceInLine | str:
        """A place, counted before anything else can run; or why the trigger cannot be accepted now."""
        if not self.accepting:
            return "Not accepting triggers: the butler is shutting down"
        place = PlaceInLine(self)
        if self.running < self.slots:
            self._let_in(place)
        elif refusal := self._refusal(trigger_source):
            return refusal
        else:
            self._line.append(place)
        return place

    def leave(self, place: PlaceInLine) -> None:
        """May be called for a place that never got a slot, and more than once."""
        if place in self._line:
            self._line.remove(place)
        elif place.has_slot:
            place.has_slot = False
            self.running -= 1
            if self._line:
                self._let_in(self._line.popleft())

    def _let_in(self, place: PlaceInLine) -> None:
        self.running += 1
        place.has_slot = True
        place.turn.set()

    def _refusal(self, trigger_source: str) -> str | None:
        """Why a trigger for which no slot is free cannot wait; None if it can."""
        if trigger_source == "trigger":
            # The session that asks keeps its slot until it gets an answer, so waiting for another could last
            # for ever.
            return f"All {self.slots} slots are taken; a session that triggers another cannot wait for one"
        if self.waiting >= self.most_waiting:
            wait = "session waits" if self.waiting == 1 else "sessions wait"
            return f"The queue is full: {self.waiting} {wait} already"
        return None


class PlaceInLine:
    """The place of an accepted trigger, from `admit` to `leave`; `turn` is set once it has a slot."""

    def __init__(self, queue: Queue) -> None:
        self.turn = asyncio.Event()
        self.has_slot = False
        self._queue = queue

    def leave(self) -> None:
        self._queue.leave(self)
