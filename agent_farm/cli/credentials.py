"""`af credentials`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from agent_farm.cli.options import current_farm, json_option, text_of
from agent_farm.cli.output import answer, answer_json, narrate, narrate_hint

if TYPE_CHECKING:
    from agent_farm.sessions.credentials import CredentialStore


@click.group()
def credentials() -> None:
    """Keys for headless sessions, encrypted in butler.db; a stored one comes before the environment's.

    A session gets only what its runtime needs or its butler declares. Values are never printed.

    \b
      af credentials set ANTHROPIC_API_KEY        (asks for the value, or reads standard input)
      af credentials list
    """


@credentials.command(name="set")
@click.argument("name")
@json_option
def set_command(name: str, as_json: bool) -> None:
    """Store a value, asked for without echo or read from standard input."""
    from agent_farm.errors import UsageError

    if "=" in name:
        raise UsageError("The value does not belong on the command line", hint="af credentials set NAME")
    store = _store()
    if sys.stdin.isatty():
        value = click.prompt(f"Value of {name}", hide_input=True, err=True)
    else:
        value = text_of(sys.stdin.buffer.read(), "Standard input").removesuffix("\n")
    store.set(name, value)
    answer_json({"set": name}) if as_json else answer(f"{name} is stored")


@credentials.command(name="list")
@json_option
def list_command(as_json: bool) -> None:
    """List the names that are stored, and when each was set."""
    names = _store().names()
    if as_json:
        answer_json({"credentials": [{"name": name, "updated_at": at} for name, at in names.items()]})
        return
    if not names:
        narrate("No credentials are stored.")
        narrate_hint("af credentials set NAME")
    for name, at in names.items():
        answer(f"{name:<30} {time.strftime('%Y-%m-%d %H:%M', time.localtime(at))}")


@credentials.command()
@click.argument("name")
@json_option
def unset(name: str, as_json: bool) -> None:
    """Remove a stored value."""
    _store().unset(name)
    answer_json({"unset": name}) if as_json else answer(f"{name} is removed")


def _store() -> CredentialStore:
    from agent_farm.sessions.credentials import CredentialStore
    from agent_farm.sessions.stores import open_database

    return CredentialStore(open_database(current_farm(tolerant=True).root))
