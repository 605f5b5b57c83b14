"""`af status`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from agent_farm.builders.ids import match_builder
from agent_farm.cli.options import current_farm, ids_argument, json_option
from agent_farm.cli.output import (
    answer,
    answer_json,
    narrate,
    narrate_hint,
    printable,
    terminal_height,
    terminal_width,
)
from agent_farm.errors import UsageError

if TYPE_CHECKING:
    from agent_farm.farm.farm import Farm
    from agent_farm.farm.listing import Builder

_WATCH_SECONDS = 1.0
# A screen of its own, as `less` and `top` have it, so that what was there before comes back.
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _ERASE_LINE, _ERASE_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


@click.command()
@ids_argument(required=False)
@click.option("--watch", "-w", is_flag=True, help="Show again every second until Ctrl-C.")
@click.option("--fresh", is_flag=True, help="Wait for every worktree's git state, however long it takes.")
@json_option
def status(ids: tuple[str, ...], watch: bool, fresh: bool, as_json: bool) -> None:
    """List builders and their state: first those that need you, then the others by type.

    \b
    States:  creating preparing working idle   at work, or its turn ended
             waiting                           needs you; the line below it says why
             interrupted                       back after its turn was cut short
             exited failed stopped lost        finished
             unknown                           tmux could not be asked
    Sources: hook launcher process screen
    Git:     +ahead -behind of the base, ~changed ?untracked files, = nothing
             landed: all its commits are on the base or a remote, also squashed
             on BRANCH, detached, rebase: what is checked out, where that is not its own branch
             no tree, not ours: git is not asked there; the second is explained by af diff
    Tokens:  41k/2k $0.13   read/written and the cost, of the whole conversation
    A narrow terminal leaves out branch, tokens, runtime and source; --json has all.
    """
    if watch and as_json:
        raise UsageError("Flags are mutually exclusive: --watch, --json", hint="af status --help")
    farm = current_farm(tolerant=True)
    if watch:
        _watch(farm, ids, fresh)
        return
    builders = _read(farm, ids, fresh)
    if as_json:
        answer_json({"builders": [builder.to_json() for builder in builders]})
    elif builders:
        answer(_table(builders))
        for builder in builders:
            if builder.renamed_from:
                renamed = f"{builder.renamed_from} is {builder.record.branch} now; its record follows."
                narrate(printable(f"{builder.record.id}: {renamed}"))
        _hint(builders)
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


def _hint(builders: list[Builder]) -> None:
    """What brings those back that do nothing by themselves."""
    states = [builder.status.state for builder in builders]
    if "lost" in states:
        narrate_hint("af recover")
    elif "interrupted" in states:
        ids = [one.record.id for one in builders if one.status.state == "interrupted"]
        narrate_hint(f'af send {" ".join(ids)} "Go on"')


def _table(builders: list[Builder]) -> str:
    from agent_farm.cli.status_table import render

    return render(builders, width=terminal_width(), now=time.time())


def _watch(farm: Farm, ids: tuple[str, ...], fresh: bool) -> None:
    if not sys.stdout.isatty():
        while True:
            answer(_picture(farm, ids, fresh) + "\n")
            time.sleep(_WATCH_SECONDS)
    answer(_ENTER, end="")
    try:
        while True:
            lines = _fitting(_picture(farm, ids, fresh).split("\n"), terminal_height())
            # drawn over the last picture, so that nothing flickers
            answer(_HOME + f"{_ERASE_LINE}\n".join(lines) + _ERASE_LINE + _ERASE_BELOW, end="")
            time.sleep(_WATCH_SECONDS)
    finally:
        answer(_LEAVE, end="")


def _picture(farm: Farm, ids: tuple[str, ...], fresh: bool) -> str:
    builders = _read(farm, ids, fresh)
    return _table(builders) if builders else "No builders."


def _fitting(lines: list[str], height: int) -> list[str]:
    """The first lines and the summary, which is the last one."""
    if len(lines) <= height:
        return lines
    hidden = len(lines) - height + 1
    return [*lines[: height - 2], f"  … {hidden} more lines; af status shows all", lines[-1]]
