"""Places the builders of lost machines elsewhere by itself, with `fleet.restart = "auto"`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from msgspec import structs

from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import Book, Placed, edit_book, read_book
from agent_farm.git.asking import side_by_side
from agent_farm.operations.fleet.held_slots import FLEET, require_room
from agent_farm.operations.fleet.placings import Placings
from agent_farm.operations.fleet.recover_elsewhere import place, require_lost, silent
from agent_farm.operations.fleet.rows_elsewhere import is_lost, shown_rows
from agent_farm.operations.operation import Context


def recover_lost(context: Context, book: Book) -> None:
    """With `fleet.restart = "auto"`, place those that were alive wherever the fleet has room."""
    farm = context.farm
    if farm.settings.text("fleet.restart") != "auto":
        return
    questions, placings = dict[str, Callable[[], None]](), Placings(context)
    for one in shown_rows(farm, book):
        id = one.record.id
        if one.status.state == "lost" and book.builders[id].checkpoint is not None:
            questions[id] = partial(_place_lost, context, placings, id)
    if questions and _has_room(book):
        side_by_side(questions, workers=len(questions))  # one that hangs delays no other


def _has_room(book: Book) -> bool:
    try:
        require_room(book, FLEET, silent(book))
    except AgentFarmError:
        return False
    return True


def _place_lost(context: Context, placings: Placings, id: str) -> None:
    try:
        with placings.at_work():
            placed = _still_lost(context.farm, id)
        if placed is not None:
            place(context, id, placed, FLEET, say=None, yes=False, placings=placings)
    except AgentFarmError as error:
        with edit_book(context.farm) as held, suppress(KeyError):
            kept = structs.replace(held[0].builders[id], problem=f"not placed elsewhere: {error.sentence}")
            held[0] = held[0].with_builder(id, kept)


def _still_lost(farm: Farm, id: str) -> Placed | None:
    """None if its machine answered while others were placed."""
    now = read_book(farm)
    return require_lost(farm, now, id) if is_lost(farm, now.machine(now.builder(id).host)) else None
