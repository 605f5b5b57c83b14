"""Which machine a builder goes to, and the slot that a cluster holds for it there."""

from __future__ import annotations

import time

import msgspec
from msgspec import structs

from agent_farm.engine.held import Held
from agent_farm.engine.plain import Plain, PlainMachine
from agent_farm.errors import Unreachable, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import Book, Machine, Word, edit_book, read_book
from agent_farm.fleet.calling import OF_CLUSTER, is_of_cluster
from agent_farm.operations.fleet import greet
from agent_farm.ssh.ssh_url import Address

FLEET = "fleet"
_SECONDS = 120.0


def hold_slot(farm: Farm, id: str, host: str) -> str:
    """That machine, or for `fleet` one of the cluster with room; without a cluster the one over ssh with
    least builders."""
    book = read_book(farm)
    if host in book.machines and not is_of_cluster(book.machines[host]):
        return host
    if book.cluster is None:
        if host != FLEET:
            book.machine(host)
        return _over_ssh(book).place(id, None)
    engine, name = Held(book.cluster.address, book.cluster.tls), f"{book.farm}/{id}"
    chosen = engine.place(name, None if host == FLEET else host)
    try:
        _take_in(farm, chosen)
    except BaseException:
        engine.release(name)
        raise
    return chosen


def _over_ssh(book: Book) -> Plain:
    machines = {host: PlainMachine() for host, one in book.machines.items() if not is_of_cluster(one)}
    return Plain(machines, {id: placed.host for id, placed in book.builders.items()})


def _take_in(farm: Farm, host: str) -> None:
    """Into the book, with a repository for this farm there."""
    book = read_book(farm)
    if host in book.machines:
        if not is_of_cluster(book.machines[host]):
            raise UsageError(
                f"{host} is in the cluster, and a machine over ssh", hint="af fleet join --name NAME …"
            )
        return
    try:
        msgspec.convert(host, Word)
    except msgspec.ValidationError as error:
        raise Unreachable(f"{host!r:.60} cannot be the name of a machine") from error
    welcome = greet(farm, book, Address(host), "af", _SECONDS, book.cluster)
    made = Machine(f"{OF_CLUSTER}{host}", welcome.program, welcome.place, seen_at=time.time())
    with edit_book(farm) as held:
        held[0] = structs.replace(held[0], machines={**held[0].machines, host: made})
