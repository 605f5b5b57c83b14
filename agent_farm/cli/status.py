"""`af status`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from agent_farm.builders.ids import match_builder
from agent_farm.cli.options import current_farm, ids_argument, json_option
from agent_farm.cli.output import answer, answer_json, narrate, narrate_hint, terminal_width

if TYPE_CHECKING:
    from agent_farm.farm.farm import Farm
    from agent_farm.farm.listing import Builder

_WATCH_SECONDS = 1.0
_HOME_AND_ERASE = "\x1b[H"
_ERASE_LINE = "\x1b[K"
_ERASE_BELOW = "\x1b[J"


@click.command()
@ids_argument(required=False)
@click.option("--watch", "-w", is_flag=True, help="Show again every second until Ctrl-C.")
@click.option("--fresh", is_flag=True, help="Wait for every worktree's git state, however long it takes.")
@json_option
def status(ids: tuple[str, ...], watch: bool, fresh: bool, as_json: bool) -> None:
    """Show builders by type: state with its source and age, branch, changes, runtime, task.

    \b
    States:  creating preparing working idle      at work, or its turn ended
             waiting                              needs a person; the reason says for what
             exited failed stopped lost           finished
             unknown                              tmux could not be asked
    Sources: hook launcher process screen
    Git:     +ahead -behind of the base, ~changed ?untracked files
    """
    farm = current_farm()
    if watch and not as_json:
        _watch(farm, ids, fresh)
        return
    builders = _read(farm, ids, fresh)
    if as_json:
        answer_json({"builders": [builder.to_json() for builder in builders]})
    elif builders:
        answer(_table(builders))
    else:
        narrate("No builders.")
        narrate_hint('af spawn "…"')


def _read(farm: Farm, ids: tuple[str, ...], fresh: bool) -> list[Builder]:
    records = farm.records()
    if not records and not ids:
        return []
    from agent_farm.farm.listing import list_builders

    chosen = [match_builder(id, list(records)) for id in dict.fromkeys(ids)] if ids else None
    return list_builders(farm, chosen, fresh=fresh)


def _table(builders: list[Builder]) -> str:
    from agent_farm.cli.status_table import render

    return render(builders, width=terminal_width(), now=time.time())


def _watch(farm: Farm, ids: tuple[str, ...], fresh: bool) -> None:
    """Each picture is drawn over the last one, so that nothing flickers."""
    screen = sys.stdout.isatty()
    while True:
        builders = _read(farm, ids, fresh)
        text = _table(builders) if builders else "No builders."
        if screen:
            lines = text.split("\n")
            answer(_HOME_AND_ERASE + f"{_ERASE_LINE}\n".join(lines) + _ERASE_LINE + _ERASE_BELOW)
        else:
            answer(text + "\n")
        time.sleep(_WATCH_SECONDS)
