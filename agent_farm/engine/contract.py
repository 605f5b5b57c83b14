"""What an engine promises: it knows each machine's room, reserves slots for builders, and carries calls.

It keeps nothing that must not be lost: the farm at home records where each builder is, and a builder's
machine what it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from msgspec import Struct

NO_LIMIT = 1_000_000


class Room(Struct, frozen=True):
    """A machine that the engine considers reachable, and how many builders it takes."""

    host: str
    slots: int
    taken: int
    draining: bool = False

    @property
    def free(self) -> int:
        return 0 if self.draining else max(0, self.slots - self.taken)

    def __str__(self) -> str:
        taken = f" {self.taken}/{self.slots}" if self.slots < NO_LIMIT else ""
        return f"{self.host}{taken}{' draining' * self.draining}"


class Engine(Protocol):
    """Each slot is held under a name, which stands for one builder of one farm."""

    def capacity(self) -> tuple[Room, ...]: ...

    def place(self, name: str, host: str | None, avoided: Collection[str] = ()) -> str:
        """Reserve a slot for `name` on `host`, or on any machine with room except `avoided`; returns the
        machine.

        Asked again, it returns the same slot. NoRoom, or NotFound for an unknown machine.
        """
        ...

    def release(self, name: str) -> None:
        """Does nothing if the name holds no slot."""
        ...

    def drain(self, name: str, host: str) -> None:
        """Give the machine no new slots while at least one name asks for that; the slots it holds stay.

        NotFound for an unknown machine. A machine that dies and comes back is still draining.
        """
        ...

    def undrain(self, name: str, host: str) -> None:
        """Does nothing if that name has not asked for it."""
        ...

    def call(self, host: str, data: bytes, *, seconds: float) -> Iterator[bytes]:
        """The lines that `af fleet answer` prints there when it reads `data`. It is started at most once.

        Unreachable if it has not ended well within `seconds`: whatever was started is then ended. The error's
        `began` is False if nobody there has read `data`, or ever will.
        """
        ...

    def places(self) -> Mapping[str, str | None]:
        """The machine that holds the slot of each name; None if it is gone and no call reaches it."""
        ...
