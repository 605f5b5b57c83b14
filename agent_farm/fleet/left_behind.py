"""What builders had on machines that they left, or when they went off the list: kept until it expires."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import edit_book
from agent_farm.git.checkpoints import drop, drop_set_aside, left_ref


def expire_left(farm: Farm, limit: float) -> Iterator[tuple[str, int]]:
    """The builder and when it came, of all that is not younger than `limit`.

    A machine whose builder has come home has been told that it is not to go on: nobody else has to be.
    """
    if farm.paths.fleet.exists():
        with edit_book(farm) as held:
            gone = [one for one in held[0].left if one.commit and 0 < one.at <= limit]
            held[0] = structs.replace(held[0], left=tuple(one for one in held[0].left if one not in gone))
        for one in gone:
            drop(farm.repository, left_ref(one.id, one.term))
            yield one.id, int(one.at)
    yield from drop_set_aside(farm.repository, limit)
