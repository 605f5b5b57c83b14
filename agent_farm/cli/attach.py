"""`af attach`, and choosing a builder where none was named."""

from __future__ import annotations

import os
from functools import partial

import click

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import Status
from agent_farm.cli.cells import cut
from agent_farm.cli.fields import offer
from agent_farm.cli.options import current_farm
from agent_farm.cli.output import is_interactive, narrate, printable, require_terminal, terminal_width
from agent_farm.errors import NotFound, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_statuses
from agent_farm.farm.panes import find_panes, require_pane
from agent_farm.launch import as_command
from agent_farm.tmux.terminal_kind import terminal_problem

_ORDER = ("waiting", "idle", "limited", "working", "preparing")


@click.command()
@click.argument("id", metavar="[ID]", required=False, shell_complete=offer("complete_ids"))
@click.option("--read-only", "-r", is_flag=True, help="Watch without typing.")
def attach(id: str | None, read_only: bool) -> None:
    """Attach to a builder's tmux session; inside tmux, switch this client to it.

    Without ID it takes the only builder, or lets you choose from a list; those that wait for a person
    come first.

    Detach as in tmux: prefix d (by default Ctrl-b d). Where the client was switched, prefix L goes back.
    """
    farm = current_farm(tolerant=True)
    if id and farm.paths.fleet.exists():
        attach_elsewhere(farm, id, read_only=read_only)
    attach_to(farm.require(id) if id else choose_builder(farm), read_only=read_only)


def attach_elsewhere(farm: Farm, id: str, *, read_only: bool = False) -> None:
    """Run `af attach` on the builder's machine, if that is another one of the fleet."""
    from agent_farm.fleet.calling import terminal_argv
    from agent_farm.operations.fleet.elsewhere import elsewhere_of

    if found := elsewhere_of(farm, id):
        book, whole, host = found
        require_terminal(hint=as_command("af", "capture", whole))
        argv = terminal_argv(book, host, "attach", *(["--read-only"] if read_only else []), id=whole)
        os.execvp(argv[0], argv)


def attach_to(record: BuilderRecord, *, read_only: bool = False) -> None:
    server, pane = require_pane(record)
    if server.is_around(os.environ):
        argv = server.switch_client_argv(pane.session_id, read_only=read_only)
    else:
        require_terminal(hint=as_command("af", "capture", record.id))
        _require_known_kind(record.id)
        os.environ.pop("TMUX", None)  # of another tmux server: tmux would refuse to nest
        argv = server.attach_argv(pane.session_id, read_only=read_only)
    os.execvp(argv[0], argv)


def _require_known_kind(id: str) -> None:
    term = os.environ.get("TERM", "")
    if (why := terminal_problem(term)) is not None:
        hint = f"TERM=xterm-256color {as_command('af', 'attach', id)}"
        raise UsageError(f"tmux cannot draw on this terminal: TERM is {term!r:.60}", why=why, hint=hint)


def require_attachable(farm: Farm) -> None:
    """Before a builder is created: refuse if this terminal could not be attached to it."""
    if not farm.tmux.is_around(os.environ):
        require_terminal(why="--attach needs one.")


def choose_builder(farm: Farm) -> BuilderRecord:
    """The only builder, or one chosen at the terminal; without a terminal, an error lists them."""
    records = list(farm.records().values())
    if not records:
        raise NotFound("There are no builders", hint='af spawn "…"')
    if len(records) == 1:
        return records[0]
    found = _with_session(farm, records)
    if len(found) == 1:
        return found[0][0]
    if not found:
        raise NotFound("No builder has a tmux session", why="All ended.", hint="af status")
    lines = _lines(found)
    if not is_interactive():
        raise UsageError("Name a builder", evidence=lines, hint=f"af attach {found[0][0].id}")
    for number, line in enumerate(lines, 1):
        narrate(f"{number:>3}  {cut(printable(line), terminal_width() - 5)}")
    number = click.prompt("Attach to (q: none)", value_proc=partial(_number, most=len(found)), err=True)
    return found[number - 1][0]


def _with_session(farm: Farm, records: list[BuilderRecord]) -> list[tuple[BuilderRecord, Status]]:
    """Builders with a session: those that need a person first, those that nobody can help last."""
    panes = find_panes(records)
    there = [record for record in records if panes[record.id].pane or not panes[record.id].known]
    statuses = read_statuses(farm, there)
    places = {state: place for place, state in enumerate(_ORDER)}
    return sorted(
        ((record, statuses[record.id]) for record in there),
        key=lambda pair: places.get(pair[1].state, len(places)),
    )


def _number(typed: str, most: int) -> int:
    if typed.strip().lower() == "q":
        raise click.Abort
    if not typed.strip().isdecimal() or not 1 <= int(typed) <= most:
        raise click.BadParameter(f"Type a number from 1 to {most}, or q.")
    return int(typed)


def _lines(found: list[tuple[BuilderRecord, Status]]) -> list[str]:
    ids = max(len(record.id) for record, _ in found)
    states = max(len(status.state) for _, status in found)
    return [
        f"{record.id.ljust(ids)}  {status.state.ljust(states)}  {_what(record, status)}"
        for record, status in found
    ]


def _what(record: BuilderRecord, status: Status) -> str:
    """The builder's question if it has one, else what it works on."""
    asked = status.reason if status.state == "waiting" else None
    return " ".join((asked or record.title).split())
