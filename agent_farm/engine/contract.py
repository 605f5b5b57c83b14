"""What an engine is: it knows how much room each machine has, keeps room for a builder, and carries calls.

It keeps nothing that cannot be lost: who is where is on record at home, what a builder is on its machine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from msgspec import Struct

NO_LIMIT = 1_000_000


class Room(Struct, frozen=True):
    """A machine that the engine believes to be reachable, and how many builders it takes."""

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
    """A slot is held under a name, which is that of one builder of one farm."""

    def capacity(self) -> tuple[Room, ...]: ...

    def place(self, name: str, host: str | None, avoided: Collection[str] = ()) -> str:
        """The machine that holds a slot for it from now on: that one, or any with room but those avoided.
        Asked again, it is the same slot. NoRoom, or NotFound for a machine that there is not."""
        ...

    def release(self, name: str) -> None:
        """Nothing where it holds none."""
        ...

    def drain(self, name: str, host: str) -> None:
        """The machine takes no new slots while anybody asks for that, each under a name; the slots it holds
        stay. NotFound for an unknown machine. A machine that dies and comes back is still draining.
        """
        ...

    def undrain(self, name: str, host: str) -> None:
        """Does nothing if that name has not asked for it."""
        ...

    def call(self, host: str, data: bytes, *, seconds: float) -> Iterator[bytes]:
        """The lines that `af fleet answer` prints there when it reads `data`. It begins at most once.
        Unreachable where it has not ended well within that time: whatever was begun then ends there. Its
        `began` is False where nobody there has read `data`, or will."""
        ...

    def places(self) -> Mapping[str, str | None]:
        """The machine that holds a slot for each name; None where it is gone, and no call reaches it."""
        ...
