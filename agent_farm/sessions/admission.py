"""Who may run now, who waits, and who is turned away at once."""

from __future__ import annotations

import asyncio

from agent_farm.sessions.slots import Slot, Slots


class Admission:
    """As many sessions run at a time as there are slots, in the order they came; up to `queue` more wait."""

    def __init__(self, slots: Slots, queue: int) -> None:
        self.slots = slots
        self.queue = queue
        self.accepting = True
        self._semaphore = asyncio.Semaphore(slots.count)
        self._admitted: set[Place] = set()

    @property
    def running(self) -> int:
        return sum(place.slot is not None for place in self._admitted)

    @property
    def waiting(self) -> int:
        return len(self._admitted) - self.running

    def admit(self, trigger_source: str) -> Place | str:
        """A place, counted before anything else can run, or why the trigger cannot be accepted now."""
        if not self.accepting:
            return "Not accepting triggers: the butler is shutting down"
        # Nobody overtakes who waits, except where being told to wait would mean to be refused.
        in_turn = trigger_source != "trigger"
        slot = None if self.waiting else self.slots.take(in_turn=in_turn)
        if slot is None and (refusal := self._refusal(trigger_source)):
            return refusal
        place = Place(self._semaphore, self.slots, self._admitted, slot)
        self._admitted.add(place)
        return place

    def _refusal(self, trigger_source: str) -> str | None:
        """Why a trigger for which no slot is free cannot wait; None when it can."""
        if trigger_source == "trigger":
            # The session that asks holds a slot until it is answered: waiting for one could last for ever.
            taken = f"All {self.slots.count} slots are taken"
            return f"{taken}; a session that triggers another cannot wait for one"
        if self.waiting >= self.queue:
            wait = "session waits" if self.waiting == 1 else "sessions wait"
            return f"The queue is full: {self.waiting} {wait} already"
        return None


class Place:
    """One accepted trigger's, from `admit` to `leave`."""

    def __init__(
        self, semaphore: asyncio.Semaphore, slots: Slots, admitted: set[Place], slot: Slot | None
    ) -> None:
        self.slot = slot
        self._semaphore = semaphore
        self._slots = slots
        self._admitted = admitted
        self._has_permit = False

    async def reach_slot(self) -> Slot:
        """Wait for a slot, first come first served."""
        await self._semaphore.acquire()
        self._has_permit = True
        if self.slot is None:
            self.slot = await self._slots.wait()
        return self.slot

    def leave(self) -> None:
        """Give everything back; also of a place that never got a slot, and more than once."""
        self._admitted.discard(self)
        if self.slot is not None:
            self.slot.release()
            self.slot = None
        if self._has_permit:
            self._has_permit = False
            self._semaphore.release()
