"""`sync` for builders on other machines: moves them onto what their base is here now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import structs

from agent_farm.fleet.book import edit_book, read_book
from agent_farm.operations.fleet.ask_machines import ask_each
from agent_farm.operations.fleet.refresh import refresh
from agent_farm.operations.fleet.work_elsewhere import fetch_work
from agent_farm.operations.operation import Context, Operation
from agent_farm.operations.sync import Synced


def sync(verb: Operation[Any, Any], context: Context, request: Any, ids: Sequence[str]) -> Iterator[Any]:
    """Looking at the machines first sends them the bases."""
    farm = context.farm
    book = read_book(farm)
    book = refresh(farm, {book.builder(id).host for id in ids})
    for part in ask_each(verb, context, book, request, ids):
        if isinstance(part, Synced):
            placed = book.builders[part.id]
            pushed = book.machine(placed.host).pushed.get(placed.base)
            if part.base_commit == pushed:  # it stands on the commit that was sent
                fetch_work(farm, book, part.id)
                _note(context, part.id, pushed)
                part = structs.replace(part, base=placed.base)
        yield part


def _note(context: Context, id: str, commit: str) -> None:
    with edit_book(context.farm) as held:
        if id in held[0].builders:
            moved = structs.replace(held[0].builders[id], base_commit=commit)
            held[0] = held[0].with_builder(id, moved)
