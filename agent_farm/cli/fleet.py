"""`af fleet`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import click

from agent_farm.cli.attach import attach_to
from agent_farm.cli.completing import complete_machines, complete_path
from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.family import Family
from agent_farm.cli.options import current_farm, text_of
from agent_farm.cli.output import answer, narrate, narrate_hint, printable
from agent_farm.engine.contract import Room
from agent_farm.farm.farm import open_farm
from agent_farm.farm.panes import require_pane
from agent_farm.fleet.calling import MARK
from agent_farm.launch import as_command
from agent_farm.operations.fleet.checkpoint import AtHome, Checkpointed
from agent_farm.operations.fleet.clusters import ClusterUp, FleetDown, Joined
from agent_farm.operations.fleet.draining import Drained, Marked, Moved, Stays
from agent_farm.operations.fleet.keep_asking import ask_late_machines, follow_machines
from agent_farm.operations.fleet.machines import ClusterShown, Fleet
from agent_farm.operations.fleet.removing import FleetLeft
from agent_farm.operations.for_home.answered import answered, place_of, view_pane
from agent_farm.operations.for_home.copied_builders import AT_WORK
from agent_farm.tmux.way_back import show_way_back

_LONGEST_TOKEN = 10_000


def _show(found: Fleet) -> None:
    for one in found.machines:
        count = f"{one.builders} builder{'s' * (one.builders != 1)}"
        drains = "draining; " * one.draining
        how = f"cannot be asked: {one.problem}" if one.problem else f"{one.git}, Python {one.python}"
        answer(printable(f"{one.host:<16} {count:<12} {drains}{how}"))
        narrate(printable(f"  {one.address}, in {one.place}"))
        for id, ref in one.left.items():
            answer(f"  {id} was placed elsewhere since; {ref} has its work from there")
    if found.cluster is not None:
        _show_cluster(found.cluster)
    elif not found.machines:
        narrate("The fleet has no machines.")
        narrate_hint("af fleet add ssh://HOST")


def _show_cluster(cluster: ClusterShown) -> None:
    how = printable(f"cannot be asked: {cluster.problem}" if cluster.problem else "Ray")
    answer(f"{cluster.address:<16} {how}{', with TLS' * cluster.tls}")
    _show_rooms(cluster.machines)
    for id in cluster.lost:
        answer(printable(f"  {id} was on a machine that is gone"))


def _show_rooms(rooms: Sequence[Room]) -> None:
    for room in rooms:
        drains = ", draining" * room.draining
        answer(printable(f"  {room.host:<16} {room.taken} of {room.slots} slots taken{drains}"))


def _show_up(up: ClusterUp) -> None:
    answer(f"{up.cluster:<16} Ray{', with TLS' * up.tls}")
    _show_rooms(up.machines)
    if up.join:
        narrate("To let a machine with the same af and Ray join:")
        answer(up.join)


def _show_joined(joined: Joined) -> None:
    answer(f"{joined.name} is in the cluster at {joined.cluster}, with {joined.slots} slots")


def _show_down(down: FleetDown) -> None:
    answer(f"{down.cluster} {'has ended here' if down.ended else 'is no longer used'}")


def _with_token(values: dict[str, Any]) -> dict[str, Any]:
    """Reads the token from standard input, so that no command line shows it; never from a terminal."""
    if values.get("cluster") is None or sys.stdin.isatty():
        return {}
    token = text_of(sys.stdin.buffer.read(_LONGEST_TOKEN), "Standard input").strip()
    return {"token": token} if token else {}


def _show_added(found: Fleet) -> None:
    _show(found)
    narrate_hint(as_command("af", "spawn", "--on", found.machines[0].host) + ' "…"')


def _show_left(found: FleetLeft) -> None:
    answer(f"{found.host} is out of the fleet")
    narrate(printable(f"{found.place} stays there; its contents are no longer known here."))
    for id in found.removed:
        narrate(f"{id} can only be restored there.")
    for id in found.forgotten:
        narrate(f"{id} is no longer known here.")
    for branch in found.branches:
        narrate(f"{branch} stays.")


def _show_drained(part: Marked | Moved | Stays) -> None:
    if isinstance(part, Marked):
        answer(f"{part.host} {'takes no new builder' if part.draining else 'takes builders again'}")
    elif isinstance(part, Moved):
        answer(f"{part.id} is on {part.on}{', interrupted' * part.interrupted}")
    else:
        answer(f"{part.id} stays, {part.state}")


def _conclude_drained(found: Drained) -> None:
    again = ["af", "fleet", "drain", found.host]
    if found.draining and not found.stay and not found.failed:
        narrate_hint(as_command("af", "fleet", "remove", found.host))
    elif any(one.state in AT_WORK for one in found.stay):
        narrate("Builders in the middle of a turn stay until it ends; --interrupt cuts it short.")
    elif found.stay:
        narrate_hint(as_command(*again, "--move"))


def _show_checkpoint(one: AtHome) -> None:
    answer(f"{one.id} {'is at home' if one.new else 'is unchanged'}")


def _conclude_checkpoints(found: Checkpointed) -> None:
    if not found.kept and not found.failed:
        narrate("No builder is on a machine that answers.")


@click.command(hidden=True)
def answer_home() -> None:
    """Carry out one call of the machine that this one belongs to, read from standard input."""
    answer(MARK.decode())
    for line in answered(sys.stdin.buffer.read(), beat=partial(answer, "{}")):
        answer(json.dumps(line))


@click.command(hidden=True)
@click.argument("hosts", nargs=-1)
@click.option("--follow", is_flag=True)
def look(hosts: tuple[str, ...], follow: bool) -> None:
    """Wait for what machines say of builders, and write it down; --follow: until standard input ends."""
    farm = current_farm(tolerant=True)
    if follow:
        follow_machines(farm, sys.stdin.buffer)
    else:
        ask_late_machines(farm, hosts)


def _at_home(function: Callable[..., None]) -> click.Command:
    """Runs here for a terminal of the machine that this one belongs to."""
    for put in (click.option("--directory", default=""), click.argument("id"), click.argument("farm")):
        function = put(function)
    return click.command(hidden=True)(function)


@_at_home
@click.option("--read-only", is_flag=True)
@click.option("--from-board", is_flag=True)
@click.option("--viewer", is_flag=True)
def attach_here(farm: str, id: str, directory: str, read_only: bool, from_board: bool, viewer: bool) -> None:
    """Attach this terminal to a builder that was put here."""
    record = open_farm(place_of(directory, farm)).require(id)
    if viewer:
        sys.exit(view_pane(record, read_only=read_only))
    if from_board:
        server, pane = require_pane(record)
        with show_way_back(server.socket, pane.session_id, switched=False):
            sys.exit(subprocess.run(server.attach_argv(pane.session_id), check=False).returncode)
    attach_to(record, read_only=read_only)


@_at_home
def shell_here(farm: str, id: str, directory: str) -> None:
    """A shell in the worktree of a builder that was put here."""
    os.chdir(open_farm(place_of(directory, farm)).require(id).worktree)
    program = os.environ.get("SHELL") or "/bin/sh"
    os.execvp(program, [program])


fleet = Family(
    "fleet",
    help="""Machines that builders of this farm work on, over ssh.

    A machine needs git, tmux, Python and the same version of af. Its builders live in a farm of their own
    there. From here they are watched, talked to, landed and removed by their ids, as those of here are.

    \b
      af fleet add ssh://big
      af spawn --on big "Fix the login redirect"
      af status
      af merge ID
    """,
    commands={
        "add": command_of(
            Way("fleet_add", _show_added),
            name="add",
            metavars={"address": "ADDRESS", "program": "PATH", "wheels": "PATH"},
            complete={"wheels": complete_path},
        ),
        "status": command_of(Way("fleet_status", _show), name="status"),
        "checkpoint": command_of(
            Way("fleet_checkpoint", _show_checkpoint, _conclude_checkpoints), name="checkpoint"
        ),
        "remove": command_of(
            Way("fleet_remove", _show_left),
            name="remove",
            complete={"host": complete_machines},
        ),
        "drain": command_of(
            Way("fleet_drain", _show_drained, _conclude_drained),
            name="drain",
            metavars={"on": "HOST"},
            complete={"host": complete_machines, "on": complete_machines},
        ),
        "up": command_of(
            Way("fleet_up", _show_up, build=_with_token),
            name="up",
            params={"token": None},
            metavars={"host": "ADDRESS", "cluster": "HOST:PORT", "tls": "DIRECTORY"},
        ),
        "join": command_of(
            Way("fleet_join", _show_joined, build=_with_token),
            name="join",
            params={"token": None},
            metavars={"cluster": "HOST:PORT", "host": "ADDRESS", "tls": "DIRECTORY", "name": "NAME"},
        ),
        "down": command_of(Way("fleet_down", _show_down), name="down"),
        "answer": answer_home,
        "attach": attach_here,
        "look": look,
        "shell": shell_here,
    },
)
