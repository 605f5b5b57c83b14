"""`af attach`, `af path`, `af capture`, `af logs`."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from agent_farm.cli.choice import choose_builder
from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.options import complete_ids, current_farm, id_argument, json_option
from agent_farm.cli.output import answer, answer_json, printable, require_terminal
from agent_farm.launch import as_command

if TYPE_CHECKING:
    from agent_farm.builders.events import Event
    from agent_farm.builders.record import BuilderRecord
    from agent_farm.farm.farm import Farm


_FOLLOW_SECONDS = 0.2


@click.command()
@click.argument("id", metavar="[ID]", required=False, shell_complete=complete_ids)
@click.option("--read-only", "-r", is_flag=True, help="Watch without typing.")
def attach(id: str | None, read_only: bool) -> None:
    """Attach to a builder's tmux session; inside tmux, switch this client to it.

    Without ID: to the only builder, or to the one chosen from a list, those that wait for a person first.

    Detach as in tmux: prefix d (by default Ctrl-b d).
    """
    farm = current_farm(tolerant=True)
    attach_to(farm, farm.require(id) if id else choose_builder(farm), read_only=read_only)


def attach_to(farm: Farm, record: BuilderRecord, *, read_only: bool = False) -> None:
    from agent_farm.farm.panes import require_pane

    server, pane = require_pane(record)
    if server.is_around(os.environ):
        argv = server.switch_client_argv(pane.session_id, read_only=read_only)
    else:
        require_terminal(hint=as_command("af", "capture", record.id))
        os.environ.pop("TMUX", None)  # another server's: tmux would refuse to nest
        argv = server.attach_argv(pane.session_id, read_only=read_only)
    os.execvp(argv[0], argv)


def require_attachable(farm: Farm) -> None:
    """For a builder that does not exist yet: this terminal could be attached to it."""
    if not farm.tmux.is_around(os.environ):
        require_terminal(why="--attach needs one.")


@click.command()
@id_argument
def path(id: str) -> None:
    """Print the absolute path of a builder's worktree: cd "$(af path ID)"."""
    answer(current_farm(tolerant=True).require(id).worktree)


capture = command_of(
    Way("capture", lambda found: answer(found.screen.rstrip("\n"))),
    short={"history": "-n", "escapes": "-e"},
    metavars={"history": "LINES"},
)


@click.command()
@id_argument
@click.option("--follow", "-f", is_flag=True, help="Go on printing until the builder has ended.")
@json_option
def logs(id: str, follow: bool, as_json: bool) -> None:
    """Print what happened to a builder: events of its launcher and its runtime."""
    from agent_farm.builders.events import load_events

    farm = current_farm(tolerant=True)
    record = farm.require(id)
    file = farm.run(record.id).events
    if as_json:
        from dataclasses import asdict

        answer_json({"id": record.id, "events": [asdict(event) for event in load_events(file)]})
        return
    shown = 0
    while True:
        ended = not follow or _has_ended(farm, id=record.id)  # asked before the events: none is missed
        events = load_events(file)
        for event in events[shown:]:
            answer(_line(event))
        shown = len(events)
        if ended:
            return
        time.sleep(_FOLLOW_SECONDS)


def _has_ended(farm: Farm, id: str) -> bool:
    from agent_farm.farm.listing import read_status

    record = farm.registry.read().get(id)
    return record is None or read_status(farm, record).is_finished


def _line(event: Event) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event.at))
    parts = [when, event.source.ljust(8), (event.state or "").ljust(9), event.event]
    return printable("  ".join(parts) + (f": {event.reason}" if event.reason else "")).replace("\n", " ")
