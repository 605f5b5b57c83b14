"""Which machine a builder goes to, and the slot that a cluster holds for it there."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, suppress

import msgspec

from agent_farm.disk import file_lock
from agent_farm.engine.contract import NoRoom
from agent_farm.engine.plain import Plain, PlainMachine
from agent_farm.errors import AgentFarmError, NotFound, Unreachable, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import Book, Machine, Word, edit_book, read_book
from agent_farm.fleet.calling import OF_CLUSTER, cluster_of, engine_of, is_of_cluster, slot_name
from agent_farm.operations.fleet.machines import greet
from agent_farm.ssh.ssh_url import Address

FLEET = "fleet"
_SECONDS = 120.0


def hold_slot(farm: Farm, id: str, host: str) -> str:
    """That machine, or for `fleet` one of the cluster with room; without a cluster the one over ssh with
    least builders. Called under `names_lock`."""
    book = read_book(farm)
    require_not_draining(book, host)
    if host in book.machines and not is_of_cluster(book.machines[host]):
        return host
    if book.cluster is None:
        if host != FLEET:
            cluster_of(book, host)
        return _over_ssh(book).place(id, None)
    hold_again(book)
    engine, name = engine_of(book.cluster), slot_name(book, id)
    try:
        chosen = engine.place(name, None if host == FLEET else host)
        take_in(farm, chosen)
    except BaseException:  # an answer that was lost may have held one, too
        with suppress(AgentFarmError):
            engine.release(name)
        raise
    return chosen


def require_not_draining(book: Book, host: str) -> None:
    if host in book.machines and book.machines[host].draining:
        raise NoRoom(
            f"{host} is draining", why="It takes no new builder.", hint=f"af fleet drain {host} --undo"
        )


def names_lock(farm: Farm, *, wait: float | None = None) -> AbstractContextManager[int]:
    """Held from the choice of an id until it is on record: no slot is without a builder then."""
    return file_lock(farm.paths.fleet.with_name("fleet-names.lock"), wait=wait)


def hold_again(book: Book) -> None:
    """As after a head has begun anew, or a machine has come back: neither knows of builders that went on.

    Slots of builders that there are no more are let go of. Called under `names_lock`.
    """
    if book.cluster is None:
        return
    engine, own = engine_of(book.cluster), slot_name(book, "")
    held = {name: host for name, host in engine.places().items() if name.startswith(own)}
    clustered = {host for host, one in book.machines.items() if is_of_cluster(one)}
    wanted = {slot_name(book, id): one.host for id, one in book.builders.items() if one.host in clustered}
    coming_back = {slot_name(book, id) for id in book.removed}
    for name in held.keys() - wanted.keys() - coming_back:
        engine.release(name)
    for name, host in wanted.items():
        if held.get(name) != host:
            with suppress(NoRoom, NotFound):
                engine.place(name, host)
    for host in clustered:
        if book.machines[host].draining:
            with suppress(NotFound):
                engine.drain(book.farm, host)


def _over_ssh(book: Book) -> Plain:
    machines = {host: PlainMachine() for host, one in book.machines.items() if not is_of_cluster(one)}
    drained = {(host, book.farm) for host, one in book.machines.items() if one.draining}
    return Plain(machines, {id: placed.host for id, placed in book.builders.items()}, drained)


def take_in(farm: Farm, host: str) -> None:
    """Into the book, with a repository for this farm there."""
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
