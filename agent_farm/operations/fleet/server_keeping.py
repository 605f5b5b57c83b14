"""What the farm's server does for builders elsewhere: fetch their work, hold their slots, place lost ones."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.fleet.book import read_book
from agent_farm.git.asking import side_by_side
from agent_farm.operations.fleet.checkpoint import bring_home
from agent_farm.operations.fleet.held_slots import hold_again, names_lock
from agent_farm.operations.fleet.refresh import refresh
from agent_farm.operations.fleet.restart_lost import recover_lost
from agent_farm.operations.operation import Context


def keep_fleet(root: Path) -> list[str]:
    """Look once at all machines, and at the slots of a cluster; returns what went wrong."""
    farm = open_farm(root)
    looks = {host: partial(_keep, farm, host) for host in read_book(farm).machines}
    found = side_by_side(looks, workers=len(looks)) if looks else {}  # one that hangs delays no other
    with suppress(AgentFarmError), names_lock(farm, wait=0):
        hold_again(read_book(farm))
    return [problem for one in found.values() if isinstance(one, list) for problem in one]


def _keep(farm: Farm, host: str) -> list[str]:
    came = bring_home(farm, refresh(farm, {host}), host, backs_off=True)
    return [f"{id}: {one.sentence}" for id, one in came.items() if isinstance(one, AgentFarmError)]


def place_lost(root: Path, environ: Mapping[str, str]) -> list[str]:
    """Runs beside `keep_fleet`: a machine may take long to make a builder, or hang. Failures are recorded."""
    farm = open_farm(root)
    book = read_book(farm)
    if any(machine.problem for machine in book.machines.values()):
        recover_lost(Context(farm, environ=environ), book)
    return []
