"""`af wait`."""

from __future__ import annotations

from typing import Any

import click

from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.fields import offer
from agent_farm.cli.output import answer, printable
from agent_farm.operations.wait import Waited


def _show_waited(found: Waited) -> None:
    for builder in found.builders:
        status = builder.status
        answer(printable(f"{builder.id} {status.state}" + (f": {status.reason}" if status.reason else "")))


def _split_states(values: dict[str, Any]) -> dict[str, Any]:
    return {"states": values["states"] and tuple(word.strip() for word in values["states"].split(","))}


wait = command_of(
    Way("wait", _show_waited, build=_split_states),
    params={
        "states": click.Option(
            ["--for", "states"],
            metavar="STATES",
            help="Comma-separated; default: idle, waiting or ended.",
            shell_complete=offer("complete_states"),
        ),
    },
    words={"any_is_enough": "--any"},
    epilog="Exit code 124 when the time is over.",
)
