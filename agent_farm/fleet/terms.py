"""Kept on a machine: the term under which each builder was placed here, and the lowest that is still valid.

A builder that home has placed elsewhere no longer counts. The next call from home says so, and the one here
is ended before that call is answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from msgspec import Struct, structs

from agent_farm.disk import file_lock
from agent_farm.documents import load, store
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm


class Terms(Struct, frozen=True):
    """`held` are the terms of builders here, `lowest` what home has said."""

    held: dict[str, int] = {}
    lowest: dict[str, int] = {}


class Superseded(AgentFarmError):
    """It has been placed elsewhere, or taken off the list, since."""

    code = "superseded"


@contextmanager
def edit_terms(farm: Farm) -> Iterator[list[Terms]]:
    """What the block leaves in the list is stored if it ends without an error."""
    file = farm.paths.state / "terms.json"
    with file_lock(farm.paths.locks / "terms.lock"):
        try:
            terms = load(file, Terms)
        except FileNotFoundError:
            terms = Terms()
        held = [terms]
        yield held
        if held[0] != terms:
            store(file, held[0])


def read_terms(farm: Farm) -> Terms:
    with edit_terms(farm) as held:
        return held[0]


def hold(farm: Farm, id: str, term: int) -> None:
    with edit_terms(farm) as held:
        require_valid(held[0], id, term)
        held[0] = structs.replace(held[0], held={**held[0].held, id: term})


def raise_lowest(farm: Farm, id: str, term: int) -> None:
    with edit_terms(farm) as held:
        lowest = max(term, held[0].lowest.get(id, 0))
        held[0] = structs.replace(held[0], lowest={**held[0].lowest, id: lowest})


def require_valid(terms: Terms, id: str, term: int) -> None:
    if term < terms.lowest.get(id, 0):
        raise Superseded(f"{id} was placed elsewhere since", hint="af fleet status")


def superseded(terms: Terms, fences: Mapping[str, int]) -> list[str]:
    """Builders to end: their term is below home's, which this machine did not know yet."""
    return [
        id for id, term in fences.items() if terms.lowest.get(id, 0) < term and terms.held.get(id, 0) < term
    ]
