"""What builders left on machines, or when they went off the list: kept until it expires."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import edit_book
from agent_farm.git.checkpoints import drop, drop_set_aside, left_ref


def expire_left(farm: Farm, limit: float) -> Iterator[tuple[str, int]]:
    """The builder and when it was fetched, for everything from `limit` or before.

    A machine whose builder's work has come home knows that it must not continue, and need not be told again.
    """
    if farm.paths.fleet.exists():
        with edit_book(farm) as held:
            gone = [one for one in held[0].left if one.commit and 0 < one.at <= limit]
            held[0] = structs.replace(held[0], left=tuple(one for one in held[0].left if one not in gone))
        for one in gone:
            drop(farm.repository, left_ref(one.id, one.term))
            yield one.id, int(one.at)
    yield from drop_set_aside(farm.repository, limit)
