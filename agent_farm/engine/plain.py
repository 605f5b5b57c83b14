"""The engine without a cluster: this machine, and those that are reached by ssh."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, MutableSet
from dataclasses import dataclass, field

from agent_farm.engine.contract import NO_LIMIT, Room
from agent_farm.errors import NoRoom, NotFound, there_are

Ask = Callable[[bytes, float], Iterator[bytes]]


@dataclass(frozen=True)
class PlainMachine:
    ask: Ask | None = None  # None if only its room is needed
    slots: int = NO_LIMIT


@dataclass(frozen=True)
class Plain:
    """`held`: which name has a slot on which machine; `drained`: who drains which machine. The caller
    stores both."""

    machines: Mapping[str, PlainMachine]
    held: MutableMapping[str, str] = field(default_factory=dict)
    drained: MutableSet[tuple[str, str]] = field(default_factory=set)

    def capacity(self) -> tuple[Room, ...]:
        taken = list(self.held.values())
        draining = {host for host, _ in self.drained}
        return tuple(
            Room(host, one.slots, taken.count(host), host in draining) for host, one in self.machines.items()
        )

    def place(self, name: str, host: str | None, avoided: Collection[str] = ()) -> str:
        if host is not None:
            self._machine(host)
        chosen = choose(self.capacity(), host, self.held.get(name), avoided)
        self.held[name] = chosen
        return chosen

    def release(self, name: str) -> None:
        self.held.pop(name, None)

    def drain(self, name: str, host: str) -> None:
        self._machine(host)
        self.drained.add((host, name))

    def undrain(self, name: str, host: str) -> None:
        self.drained.discard((host, name))

    def call(self, host: str, data: bytes, *, seconds: float) -> Iterator[bytes]:
        ask = self._machine(host).ask
        assert ask is not None
        return ask(data, seconds)

    def places(self) -> dict[str, str | None]:
        return {name: host if host in self.machines else None for name, host in self.held.items()}

    def _machine(self, host: str) -> PlainMachine:
        if host not in self.machines:
            raise NotFound(f"No machine {host}", why=there_are(host, sorted(self.machines)))
        return self.machines[host]


def choose(
    rooms: tuple[Room, ...], host: str | None, now: str | None = None, avoided: Collection[str] = ()
) -> str:
    """The machine that already holds the slot, the one asked for, or the one with most room."""
    known = [room for room in rooms if host in (None, room.host)]
    if now is not None and any(room.host == now for room in known):
        return now
    if now is not None and host is not None and host != now:
        raise NoRoom(f"It is on {now} already")
    known = [room for room in known if room.host not in avoided]
    best = max(known, key=lambda room: (room.free, -room.taken), default=None)
    if best is None or not best.free:
        full = ", ".join(map(str, known[:10]))
        raise NoRoom(
            f"No room on {host or 'the fleet'}", why=full or "It has no machine.", hint="af fleet status"
        )
    return best.host
