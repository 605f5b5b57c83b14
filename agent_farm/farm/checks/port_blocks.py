"""Finds unused port blocks of this farm, and of the user's other farms."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from agent_farm.farm.checks.finding import Finding
from agent_farm.farm.farm import Farm
from agent_farm.ports import forget_farms, release_ports, reserved_ports


def check_ports(farm: Farm) -> Iterator[Finding]:
    blocks = reserved_ports()
    records = farm.registry.read()
    mine = blocks.get(str(farm.root), {})
    for id in sorted(mine.keys() - records.ids):
        if not id.startswith("("):  # a server of the farm
            yield Finding(
                "problem",
                f"ports {mine[id][0]} to {mine[id][-1]} are reserved for {id}, which no longer exists",
                heal=partial(_release, farm, id),
            )
    yield from _of_others([root for root in blocks if not os.path.isdir(root)])


def _of_others(unseen: list[str]) -> Iterator[Finding]:
    """A farm whose directory does not exist may have been deleted, or be on a disk not mounted here."""
    deleted = sorted(root for root in unseen if os.path.isdir(os.path.dirname(root)))
    if deleted:
        yield Finding(
            "note",
            f"ports are reserved for {_farms(deleted)}, which no longer exist",
            heal=partial(_forget, deleted),
        )
    hidden = sorted(set(unseen) - set(deleted))
    if hidden:
        yield Finding("ok", f"ports are reserved for {_farms(hidden)}, which cannot be seen from here")


def _farms(roots: list[str]) -> str:
    return roots[0] if len(roots) == 1 else f"{roots[0]} and {len(roots) - 1} more farms"


def _release(farm: Farm, id: str) -> str:
    with farm.registry.edit() as records:  # a spawn reserves ports and stores its record under this lock
        if id in records.ids:
            return f"{id} now exists"
        release_ports(farm.root, [id])
    return f"the ports of {id} are free"


def _forget(roots: list[str]) -> str:
    forget_farms(roots)
    return f"the ports of {_farms(roots)} are free"
