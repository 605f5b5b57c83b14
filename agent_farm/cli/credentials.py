"""`af credentials`."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.options import text_of
from agent_farm.cli.output import answer, narrate, narrate_hint
from agent_farm.errors import UsageError
from agent_farm.operations.credentials import AllCredentials, SetCredential, UnsetCredential


def _with_value(values: dict[str, Any]) -> dict[str, Any]:
    """Asked for without echo, or read from standard input."""
    name = values["name"]
    if "=" in name:
        raise UsageError("The value does not belong on the command line", hint="af credentials set NAME")
    if sys.stdin.isatty():
        return {"name": name, "value": click.prompt(f"Value of {name}", hide_input=True, err=True)}
    return {"name": name, "value": text_of(sys.stdin.buffer.read(), "Standard input").removesuffix("\n")}


def _show_all(found: AllCredentials) -> None:
    if not found.credentials:
        narrate("No credentials are stored.")
        narrate_hint("af credentials set NAME")
    for one in found.credentials:
        answer(f"{one.name:<30} {time.strftime('%Y-%m-%d %H:%M', time.localtime(one.updated_at))}")


def _show_set(found: SetCredential) -> None:
    answer(f"{found.set} is stored")


def _show_unset(found: UnsetCredential) -> None:
    answer(f"{found.unset} is removed")


credentials = click.Group(
    "credentials",
    help="""Keys for headless sessions, encrypted in butler.db; a stored one wins over the environment's.

    A session gets only what its runtime needs or its butler declares. Values are never printed.

    \b
      af credentials set ANTHROPIC_API_KEY        (asks for the value, or reads standard input)
      af credentials list
    """,
    commands=[
        command_of(
            Way("credentials_set", _show_set, build=_with_value),
            name="set",
            help="Store a value, asked for without echo or read from standard input.",
            params={"name": click.Argument(["name"]), "value": None},
        ),
        command_of(Way("credentials_list", _show_all), name="list"),
        command_of(
            Way("credentials_unset", _show_unset), name="unset", params={"name": click.Argument(["name"])}
        ),
    ],
)
