"""What `af doctor` looks for on other machines: builders that their machine does not have, and those whose
work does not come home."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from agent_farm.errors import AgentFarmError
from agent_farm.farm.checks.finding import Finding
from agent_farm.farm.farm import Farm
from agent_farm.git.checkpoints import kept_ref
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
