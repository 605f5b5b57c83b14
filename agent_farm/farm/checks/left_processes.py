"""Processes of builders that run no more."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import Status
from agent_farm.farm.checks.finding import Finding
from agent_farm.farm.ending import end_left
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_statuses
from agent_farm.farm.locks import hold
from agent_farm.processes import processes_of_runs


def check_left_processes(farm: Farm) -> Iterator[Finding]:
    """Launcher and keeper were killed together, or a process outlived `af stop`.

    One that exited or failed is no such case: the person's shell is left of it, with whatever runs there.
    """
    for record, pids in _left(farm).values():
        yield Finding(
            "problem",
            f"{record.id} is gone, but left {_named(pids)} running",
            heal=partial(_end, farm, record),
        )


def _left(farm: Farm) -> dict[str, tuple[BuilderRecord, list[int]]]:
    records = farm.registry.read()
    found = processes_of_runs(record.run for record in records.values())  # before tmux is asked: a builder
    some = [record for record in records.values() if record.run in found]  # that starts now has no process
    statuses = read_statuses(farm, some) if some else {}
    return {record.id: (record, found[record.run]) for record in some if _is_gone(statuses[record.id])}


def _is_gone(status: Status) -> bool:
    return status.state in ("lost", "stopped")


def _end(farm: Farm, record: BuilderRecord) -> str:
    with hold(farm, record.id) as current:
        if record.id not in _left(farm):
            return f"{record.id} has none left"
        if left := end_left([current]):
            raise left[current.id]
    return "they are ended"


def _named(pids: list[int]) -> str:
    return f"{'process' if len(pids) == 1 else 'processes'} {', '.join(map(str, sorted(pids)))}"
