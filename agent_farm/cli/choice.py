"""Which builder is meant, where none was named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_farm.cli.output import is_interactive, narrate, printable
from agent_farm.errors import NotFound, UsageError
from agent_farm.farm.listing import read_statuses
from agent_farm.farm.panes import find_panes

if TYPE_CHECKING:
    from agent_farm.builders.record import BuilderRecord
    from agent_farm.builders.status import Status
    from agent_farm.farm.farm import Farm

_ORDER = ("waiting", "idle", "limited", "working", "preparing")


def choose_builder(farm: Farm) -> BuilderRecord:
    """The only one, or one with a session chosen at the terminal; without one, an error that lists them."""
    records = list(farm.records().values())
    if not records:
        raise NotFound("There is no builder", hint='af spawn "…"')
    if len(records) == 1:
        return records[0]
    found = _with_session(farm, records)
    if len(found) == 1:
        return found[0][0]
    if not found:
        raise NotFound("No builder has a tmux session", why="All ended.", hint="af status")
    lines = [_line(record, status) for record, status in found]
    if not is_interactive():
        raise UsageError("Name a builder", evidence=lines, hint=f"af attach {found[0][0].id}")
    for number, line in enumerate(lines, 1):
        narrate(f"{number:>3}  {printable(line)}")
    number = click.prompt("Attach to", type=click.IntRange(1, len(found)), err=True)
    return found[number - 1][0]


def _with_session(farm: Farm, records: list[BuilderRecord]) -> list[tuple[BuilderRecord, Status]]:
    """Those that need a person first; what a person can do nothing about last."""
    panes = find_panes(records)
    there = [record for record in records if panes[record.id].pane or not panes[record.id].known]
    statuses = read_statuses(farm, there)
    places = {state: place for place, state in enumerate(_ORDER)}
    return sorted(
        ((record, statuses[record.id]) for record in there),
        key=lambda pair: places.get(pair[1].state, len(places)),
    )


def _line(record: BuilderRecord, status: Status) -> str:
    reason = f" ({status.reason})" if status.state == "waiting" and status.reason else ""
    title = " ".join(record.title.split())[:60]
    return f"{record.id}  {status.state}{reason}  {title}"
