"""Chooses the machine for a builder, and the slot that a cluster holds for it there."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import AbstractContextManager, suppress

import msgspec

from agent_farm.disk import file_lock
from agent_farm.engine.plain import Plain, PlainMachine, choose
from agent_farm.errors import AgentFarmError, NoRoom, NotFound, Unreachable, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import Book, Machine, Word, edit_book, read_book
from agent_farm.fleet.calling import OF_CLUSTER, builder_of, cluster_of, engine_of, is_of_cluster, slot_name
from agent_farm.operations.fleet.machines import greet
from agent_farm.ssh.ssh_url import Address

FLEET = "fleet"
_SECONDS = 120.0


def hold_slot(farm: Farm, id: str, term: int, on: str, avoided: Collection[str] = ()) -> str:
    """The machine for the builder. `fleet` means one with room that is not avoided: in the cluster or, if
    that has none or cannot be asked, the one over ssh with the fewest builders. Called under `names_lock`."""
    book = read_book(farm)
    require_not_draining(book, on)
    if on in book.machines and not is_of_cluster(book.machines[on]):
        return on
    over_ssh, name = _over_ssh(book, avoided), slot_name(book, id, term)
    if book.cluster is None:
        if on != FLEET:
            cluster_of(book, on)
        return over_ssh.place(name, None)
    if on != FLEET:
        return _hold_in_cluster(farm, book, name, on)
    try:
        return _hold_in_cluster(farm, book, name, None, avoided)
    except (NoRoom, Unreachable):
        if not over_ssh.machines:
            raise
        return over_ssh.place(name, None)


def _hold_in_cluster(farm: Farm, book: Book, name: str, on: str | None, avoided: Collection[str] = ()) -> str:
    assert book.cluster
    hold_again(book)
    engine = engine_of(book.cluster)
    try:
        chosen = engine.place(name, on, avoided)
        take_in(farm, chosen)
    except BaseException:  # a slot may be held even if the answer was lost
        with suppress(AgentFarmError):
            engine.release(name)
        raise
    return chosen


def require_room(book: Book, on: str, avoided: Collection[str] = ()) -> None:
    """As far as can be told now; called before anything is ended to be moved."""
    require_not_draining(book, on)
    if on in book.machines and not is_of_cluster(book.machines[on]):
        return
    over_ssh = _over_ssh(book, avoided).capacity() if on == FLEET else ()
    if any(room.free for room in over_ssh):
        return
    if book.cluster is None and on != FLEET:
        cluster_of(book, on)
    rooms = (*over_ssh, *(engine_of(book.cluster).capacity() if book.cluster else ()))
    if on != FLEET and on not in {room.host for room in rooms}:
        book.machine(on)
        raise Unreachable(f"{on} is not in the cluster", hint="af fleet status")
    choose(rooms, None if on == FLEET else on, avoided=avoided if on == FLEET else ())


def require_not_draining(book: Book, host: str) -> None:
    if host in book.machines and book.machines[host].draining:
        raise NoRoom(
            f"{host} is draining", why="It takes no new builder.", hint=f"af fleet drain {host} --undo"
        )


def names_lock(farm: Farm, *, wait: float | None = None) -> AbstractContextManager[int]:
    """Held from choosing an id until it is on record, so that every slot has a builder."""
    return file_lock(farm.paths.fleet.with_name("fleet-names.lock"), wait=wait)


def hold_again(book: Book) -> None:
    """Hold slots again after a head restarted or a machine returned, which do not know their running
    builders.

    Slots without a builder are released. Called under `names_lock`.
    """
    if book.cluster is None:
        return
    engine = engine_of(book.cluster)
    held, wanted = engine.places(), _wanted(book)
    for name in slots_of_nobody(book, held):
        engine.release(name)
    if lacking := {name: host for name, host in wanted.items() if held.get(name) != host}:
        there = {room.host for room in engine.capacity()}
        for name, host in lacking.items():
            if host in there:
                with suppress(NoRoom, NotFound):
                    engine.place(name, host)
    for host, one in book.machines.items():
        if is_of_cluster(one) and one.draining:
            with suppress(NotFound):
                engine.drain(book.farm, host)


def slots_of_nobody(book: Book, held: Collection[str]) -> list[str]:
    """Those of `held` that are this farm's and no builder's. One that was only just placed may still go back
    to where it was, and keeps both slots."""
    wanted = _wanted(book)
    moving = {id for id, one in book.builders.items() if not one.is_known}
    found = {name: builder_of(book, name) for name in held if name not in wanted}
    return sorted(name for name, id in found.items() if id is not None and id not in moving)


def _wanted(book: Book) -> dict[str, str]:
    """The machine of each builder in the cluster, by the slot's name."""
    return {
        slot_name(book, id, one.term): one.host
        for id, one in book.builders.items()
        if one.host in book.machines and is_of_cluster(book.machines[one.host])
    }


def _over_ssh(book: Book, avoided: Collection[str]) -> Plain:
    hosts = (host for host, one in book.machines.items() if not is_of_cluster(one))
    machines = {host: PlainMachine() for host in hosts if host not in avoided}
    drained = {(host, book.farm) for host, one in book.machines.items() if one.draining}
    return Plain(machines, {id: placed.host for id, placed in book.builders.items()}, drained)


def take_in(farm: Farm, host: str) -> None:
    """Record the machine, and create a repository for this farm there."""
    book = read_book(farm)
    if host in book.machines:
        if not is_of_cluster(book.machines[host]):
            raise UsageError(
                f"{host} is the name of a cluster's machine and of one reached by ssh",
                hint="af fleet join --name NAME …",
            )
        return
    try:
        msgspec.convert(host, Word)
    except msgspec.ValidationError as error:
        raise Unreachable(f"{host!r:.60} cannot be the name of a machine") from error
    welcome = greet(farm, book, Address(host), "af", _SECONDS, book.cluster)
    made = Machine(f"{OF_CLUSTER}{host}", welcome.program, welcome.place, seen_at=time.time())
    with edit_book(farm) as held:
        held[0] = held[0].with_machine(host, made)
