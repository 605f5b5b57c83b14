"""What `af doctor` looks for on other machines: builders that their machine does not have, those whose work
does not come home, and slots of a cluster that no builder has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from agent_farm.errors import AgentFarmError
from agent_farm.farm.checks.finding import Finding
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import read_book
from agent_farm.fleet.calling import builder_of, engine_of
from agent_farm.git.checkpoints import kept_ref
from agent_farm.operations.fleet.held_slots import names_lock, slots_of_nobody
from agent_farm.operations.fleet.making import is_being_made
from agent_farm.operations.fleet.prune_elsewhere import ask_about, take_off
from agent_farm.operations.fleet.refresh import refresh
from agent_farm.operations.fleet.rows_elsewhere import ago
from agent_farm.operations.operation import Context


def check_placed(farm: Farm) -> Iterator[Finding]:
    """Left mostly by an interrupted spawn or removal. Machines that cannot be asked are skipped."""
    book = refresh(farm)
    for id, placed in book.builders.items():
        if placed.gone and book.machine(placed.host).problem is None and not is_being_made(farm, id):
            what = f"{id} is on record here, but {placed.host} has no such builder"
            yield Finding("problem", what, f"af prune {id}", partial(_settle, farm, id))
        elif placed.problem and kept_ref(id) in book.refused:
            age = f"is from {ago(placed.checkpoint.at)}" if placed.checkpoint else "is missing"
            yield Finding("problem", f"The checkpoint of {id} {age}: {placed.problem}", "af fleet checkpoint")


def check_slots(farm: Farm) -> Iterator[Finding]:
    """Left by a kill between the cluster and the list here. While a spawn chooses its machine, or if the
    cluster cannot be asked, there is nothing to tell."""
    book, found = read_book(farm), list[str]()
    if book.cluster is None:
        return
    with suppress(AgentFarmError), names_lock(farm, wait=0):
        book = read_book(farm)
        found = slots_of_nobody(book, engine_of(book.cluster).places()) if book.cluster else []
    for name in found:
        what = f"The cluster holds a slot for {builder_of(book, name)}, which is no builder there"
        yield Finding("problem", what, heal=partial(_release, farm, name))


def _release(farm: Farm, name: str) -> str:
    with names_lock(farm):
        book = read_book(farm)
        if book.cluster is not None and name in slots_of_nobody(book, (name,)):
            engine_of(book.cluster).release(name)
    return "it is free"


def _settle(farm: Farm, id: str) -> str:
    """Only settles what never arrived there or was removed there; of others, what came home is all."""
    told = list[str]()
    placed = refresh(farm).builders[id]
    found = ask_about(farm, id)
    if found.there:
        return f"{placed.host} has it"
    if found.removal is None and placed.is_known:
        raise AgentFarmError(f"The fetched work of {id} is all that is left of it", hint=f"af prune {id}")
    take_off(Context(farm, tell=told.append), id, found)
    return (
        f"it can be restored: af restore {id}" if found.removal else "; ".join(["it is off the list", *told])
    )
