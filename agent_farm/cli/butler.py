"""`af butler`, `af mcp`, and the keys of the server's sessions."""

from __future__ import annotations

import os
import sys
from typing import Any

import click
from msgspec.structs import asdict

from agent_farm.cli.butler_state import state
from agent_farm.cli.cells import moment
from agent_farm.cli.completing import complete_credentials
from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.family import Family
from agent_farm.cli.options import current_farm, tell_who_is_awaited, text_of
from agent_farm.cli.output import answer, answer_bytes, narrate, narrate_hint
from agent_farm.cli.sessions import when
from agent_farm.consent import HINT
from agent_farm.errors import NotFound, UsageError
from agent_farm.operations.butler import ServerStatus, Started
from agent_farm.operations.credentials import AllCredentials
from agent_farm.server.address import server_files


def _show_started(found: Started) -> None:
    answer(str(found.server.url))
    narrate("Started." if found.started else "Already running.")
    if found.waiting:
        narrate("Not approved yet, so it has no effect:")
        for wish in found.waiting:
            narrate(f"  {wish}")
        narrate_hint(HINT)


def _show_status(found: ServerStatus) -> None:
    if not found.server.running:
        answer("not running")
        narrate_hint("af butler start")
        return
    for name, value in asdict(found.server).items():
        shown = when(value) if name == "started_at" else "yes" if value is True else value
        answer(f"{name:<11} {shown}")
    if len(found.butlers) > 1:
        for one in found.butlers:
            answer(f"  {one.butler:<20} {one.sessions} running, {one.queued} queued")


butler = Family(
    "butler",
    help="""The farm's server: builders talk to it, sessions run in it, schedules fire from it.

    `af spawn` starts it if needed. It serves every butler in codev/roster/.
    """,
    commands=[
        command_of(Way("butler_start", _show_started)),
        command_of(Way("butler_stop", lambda found: answer("stopped" if found.stopped else "not running"))),
        command_of(Way("butler_status", _show_status)),
        state,
    ],
)


@butler.command()
@click.option("--lines", "-n", type=click.IntRange(min=1), default=50, show_default=True)
@click.option("--follow", "-f", is_flag=True, help="Keep printing as lines are written.")
def logs(lines: int, follow: bool) -> None:
    """Print the end of the server's log."""
    log = server_files(current_farm(tolerant=True).root).log
    if not log.exists():
        raise NotFound("There is no log: the server has never run", hint="af butler start")
    if follow:
        os.execvp("tail", ["tail", "-n", str(lines), "-F", str(log)])
    answer_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[-lines:]))


@click.command()
def mcp() -> None:
    """Serve the architect's tools over stdio, so that an AI session can run the farm.

    \b
      claude mcp add farm -- af mcp
      codex mcp add farm -- af mcp
    """
    from agent_farm.server.bridge import Bridge

    tell_who_is_awaited("an AI session")
    Bridge(current_farm(tolerant=True).root, sys.stdout.buffer).serve(sys.stdin.buffer)


def _with_value(values: dict[str, Any]) -> dict[str, Any]:
    """Asks for the value without echo, or reads it from standard input."""
    name = values["name"]
    if "=" in name:
        raise UsageError("The value must not be on the command line", hint="af credentials set NAME")
    if sys.stdin.isatty():
        return {"value": click.prompt(f"Value of {name}", hide_input=True, err=True)}
    return {"value": text_of(sys.stdin.buffer.read(), "Standard input").removesuffix("\n")}


def _show_all(found: AllCredentials) -> None:
    if not found.credentials:
        narrate("No credentials are stored.")
        narrate_hint("af credentials set NAME")
    for one in found.credentials:
        answer(f"{one.name:<30} {moment(one.updated_at)}")


_NAMED = {"name": complete_credentials}
credentials = Family(
    "credentials",
    help="""Keys for headless sessions, encrypted in butler.db; a stored one wins over the environment's.

    A session gets only what its runtime needs or its butler declares. Values are never printed.

    \b
      af credentials set ANTHROPIC_API_KEY   (asks, or reads standard input)
      af credentials list
    """,
    commands=[
        command_of(
            Way("credentials_set", lambda found: answer(f"{found.set} is stored"), build=_with_value),
            help="Store a value, asked for without echo or read from standard input.",
            complete=_NAMED,
            params={"value": None},
        ),
        command_of(Way("credentials_list", _show_all)),
        command_of(
            Way("credentials_unset", lambda found: answer(f"{found.unset} is removed")),
            complete=_NAMED,
        ),
    ],
)
