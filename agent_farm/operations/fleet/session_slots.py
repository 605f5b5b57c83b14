"""Chooses a machine with room for a headless session, and holds the room until its end is recorded."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field

from agent_farm.engine.contract import Engine
from agent_farm.engine.plain import Plain, PlainMachine
from agent_farm.errors import AgentFarmError, NoRoom, NotFound
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import Book, read_book
from agent_farm.fleet.calling import engine_of, is_of_cluster
from agent_farm.operations.fleet.held_slots import FLEET


@dataclass
class SessionSlots:
    """A cluster holds these slots like those of builders; for machines over ssh this process does, which runs
    all of the farm's sessions."""

    farm: Farm
    held: dict[str, str] = field(default_factory=dict)

    def hold(self, id: str, wish: str, avoided: Collection[str]) -> str:
        """`wish` is a machine, or `fleet`. NoRoom if the session has to wait."""
        book = read_book(self.farm)
        engine = self._engine(book, wish)
        rooms = [room for room in engine.capacity() if wish in (FLEET, room.host)]
        if not rooms and wish != FLEET:
            book.machine(wish)
        if not rooms:
            raise NotFound("The fleet has no machines", hint="af fleet add ssh://HOST")
        usable = [room for room in rooms if room.host not in avoided and not room.draining]
        if not usable:
            why = {room.host: "is draining" if room.draining else "cannot be reached" for room in rooms}
            told = ", ".join(f"{host} {one}" for host, one in sorted(why.items()))
            raise NotFound("No machine of the fleet can run the session", why=told, hint="af fleet status")
        best = max(usable, key=lambda room: (room.free, -room.taken))
        if not best.free:
            raise NoRoom("No machine of the fleet has room")
        try:
            return engine.place(self._name(book, id), best.host)
        except NotFound as error:  # it disappeared just now
            raise NoRoom("Another machine is needed") from error

    def hold_again(self, id: str, host: str) -> None:
        """For a session that is on a machine already."""
        book = read_book(self.farm)
        with suppress(AgentFarmError):
            self._engine(book, host).place(self._name(book, id), host)

    def release(self, id: str) -> None:
        """If the cluster cannot be asked, the slot stays taken; that is the only harm."""
        book = read_book(self.farm)
        if self.held.pop(self._name(book, id), None) is None and book.cluster is not None:
            with suppress(AgentFarmError):
                engine_of(book.cluster).release(self._name(book, id))

    def release_others(self, ids: Collection[str]) -> None:
        """Release slots of sessions that ended while no server was running."""
        book = read_book(self.farm)
        if book.cluster is None:
            return
        with suppress(AgentFarmError):
            engine, kept = engine_of(book.cluster), {self._name(book, id) for id in ids}
            for name in engine.places():
                if name.startswith(self._name(book, "")) and name not in kept:
                    engine.release(name)

    def _engine(self, book: Book, wish: str) -> Engine:
        over_ssh = {host for host, one in book.machines.items() if not is_of_cluster(one)}
        if book.cluster is not None and wish not in over_ssh:
            return engine_of(book.cluster)
        slots = self.farm.settings.number("sessions.at_once")
        drained = {(host, book.farm) for host in over_ssh if book.machines[host].draining}
        return Plain({host: PlainMachine(slots=slots) for host in over_ssh}, self.held, drained)

    def _name(self, book: Book, id: str) -> str:
        """The slot's name; a builder's has the farm's name and a slash, so that they never collide."""
        return f"{book.farm}.session/{id}"
