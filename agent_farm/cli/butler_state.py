"""`af butler state`."""

from __future__ import annotations

import json
from typing import Any

import click

from agent_farm.cli.columns import table
from agent_farm.cli.completing import complete_state_keys
from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.family import Family
from agent_farm.cli.output import answer, narrate, narrate_hint, printable, terminal_width
from agent_farm.operations.state import AllKept, Forgotten, KeptValue


def _show_all(found: AllKept) -> None:
    if not found.state:
        narrate("Nothing is kept.")
        narrate_hint("af butler state set KEY VALUE")
    rows = [(printable(key), json.dumps(value)) for key, value in found.state.items()]
    for line in table(rows, terminal_width()):
        answer(line)


def _show(found: KeptValue) -> None:
    if not found.revision:
        narrate(f"Nothing is kept under {printable(found.key)}.")
        return
    answer(printable(found.value) if isinstance(found.value, str) else json.dumps(found.value, indent=2))


def _show_forgotten(found: Forgotten) -> None:
    answer(f"{printable(found.key)} {'is deleted' if found.deleted else 'was not there'}")


def _value(values: dict[str, Any]) -> dict[str, Any]:
    """JSON; what is none is text."""
    try:
        return {"value": json.loads(values["value"])}
    except (ValueError, RecursionError):
        return {"value": values["value"]}


_NAMED = {"key": complete_state_keys}
state = Family(
    "state",
    help="""What a butler's sessions keep for later ones: JSON values by key, with revisions.

    \b
      af butler state list
      af butler state set last-digest '{"day": "2027-03-31", "seen": 12}'
      af butler state get last-digest
    """,
    commands=[
        command_of(Way("state_list", _show_all)),
        command_of(Way("state_get", _show), complete=_NAMED),
        command_of(
            Way("state_set", lambda found: answer(f"{printable(found.key)} is kept"), build=_value),
            help="Keep VALUE, JSON or text, for later sessions.",
            params={"value": click.Argument(["value"])},
            complete=_NAMED,
        ),
        command_of(Way("state_delete", _show_forgotten), complete=_NAMED),
    ],
)
