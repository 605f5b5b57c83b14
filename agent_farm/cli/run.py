"""`af run`, `af trigger`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agent_farm.cli.options import asker, complete_runtimes, current_farm, json_option, text_of, yes_option
from agent_farm.cli.output import answer, answer_json, narrate, narrate_hint, printable
from agent_farm.errors import AgentFarmError, TimedOut, UsageError
from agent_farm.sessions.trigger_sources import CHOSEN_SOURCES, SCHEDULE_PREFIX
from agent_farm.settings import PERMISSIONS

if TYPE_CHECKING:
    from agent_farm.farm.farm import Farm
    from agent_farm.sessions.schedules import Schedule
    from agent_farm.sessions.session import SessionRequest, SpawnerResult

F = TypeVar("F", bound=Callable[..., Any])


def session_options(command: F) -> F:
    """What one session may choose for itself."""
    for option in (
        click.option("--context", metavar="TEXT", help="Text put before the prompt."),
        click.option("--max-turns", type=click.IntRange(min=1), default=20, show_default=True),
        click.option("--runtime", metavar="NAME", help="Runtime to use.", shell_complete=complete_runtimes),
        click.option("--model", metavar="M", help="Model to ask the runtime for."),
        click.option("--permissions", type=click.Choice(PERMISSIONS), help="What it may do."),
        click.option(
            "--cwd",
            type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
            help="Directory to run in; default: the butler's own.",
        ),
        click.option(
            "--timeout",
            type=click.FloatRange(min=0, min_open=True),
            metavar="SECONDS",
            help="End it after this long.",
        ),
        click.option("--butler", metavar="NAME", help="Butler to run as; default: the farm's own."),
        yes_option,
    ):
        command = option(command)
    return command


resume_option = click.option(
    "--resume",
    metavar="ID",
    help="Go on with the conversation of session ID: its runtime, its directory.",
)


@click.command()
@click.argument("prompt", metavar="PROMPT|-")
@session_options
@resume_option
@json_option
def run(prompt: str, butler: str | None, yes: bool, as_json: bool, **options: Any) -> int:
    """Run one headless session in the foreground. Ctrl-C cancels it; its record says so.

    It works in the butler's own directory, or in --cwd, and may read the checkout you are in. The farm's
    server runs it, which is started when needed and ends by itself; the session gets the keys of your shell.

    \b
      af run "Summarise the open TODOs in codev/"
      git diff | af run --context "Review this change" -
      af run --resume 3f2a "And which of them is the oldest?"
    """
    from agent_farm.server.client import run_session

    farm = current_farm()
    butler = butler or _butler_of(farm.root, options["resume"])
    request = _request(farm, prompt, options)
    _agree(farm.root, butler, request, yes)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # they cancel the session as Ctrl-C does
    return show_result(run_session(farm.root, butler, request, _narrate, attached=True), as_json)


@click.command()
@click.argument("prompt", metavar="PROMPT|-")
@session_options
@resume_option
@click.option("--source", type=click.Choice(CHOSEN_SOURCES), help="Trigger source to record.")
@click.option("--no-wait", is_flag=True, help="Print the session's id and leave.")
@json_option
def trigger(
    prompt: str,
    butler: str | None,
    source: str | None,
    no_wait: bool,
    yes: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Hand a prompt to the farm's server, which is started when needed; the session outlives this command.

    \b
      af trigger "Check the nightly build"
      af trigger --no-wait "Tidy the changelog"
      af trigger --source route --context "From: the mailbox" "File this"
    """
    farm = current_farm()
    butler = butler or _butler_of(farm.root, options["resume"])
    request = _request(farm, prompt, options, source=source, waits=not no_wait)
    _agree(farm.root, butler, request, yes)
    return _hand_over(farm.root, butler, request, no_wait=no_wait, as_json=as_json)


def run_schedule(butler: str, schedule: Schedule, *, no_wait: bool, yes: bool, as_json: bool) -> int:
    """A session of a schedule that is not waited for to be due; one that asks for it stays its parent."""
    import msgspec

    farm = current_farm()
    place = {"cwd": schedule.directory(farm.root)} if schedule.cwd else {}
    request = _request(farm, schedule.prompt, place, waits=not no_wait)
    _agree(farm.root, butler, request, yes)
    if request.trigger_source == "external":
        request = msgspec.structs.replace(request, trigger_source=SCHEDULE_PREFIX + schedule.name)
    return _hand_over(farm.root, butler, request, no_wait=no_wait, as_json=as_json)


def _agree(root: Path, butler: str | None, request: SessionRequest, yes: bool) -> None:
    """Here sits somebody who can be asked what the session may have of the repository."""
    from agent_farm.sessions.butlers import load_butler
    from agent_farm.sessions.credentials import CredentialStore
    from agent_farm.sessions.runtime_choice import agree_to_session
    from agent_farm.sessions.stores import open_database

    agree_to_session(
        root,
        load_butler(root, butler),
        CredentialStore(open_database(root), os.environ),
        request,
        yes=yes,
        ask=asker(),
    )


def _hand_over(
    root: Path, butler: str | None, request: SessionRequest, *, no_wait: bool, as_json: bool
) -> int:
    from agent_farm.server.client import run_session, start_session

    if not no_wait:
        return show_result(run_session(root, butler, request, _narrate), as_json)
    started = start_session(root, butler, request)
    if not isinstance(started, str):
        return show_result(started, as_json)
    if as_json:
        answer_json({"session_id": started})
    else:
        answer(started)
        narrate_hint(f"af sessions --follow {started}")
    return 0


def _request(
    farm: Farm, prompt: str, options: Mapping[str, Any], *, waits: bool = True, source: str | None = None
) -> SessionRequest:
    from agent_farm.sessions.session import SessionRequest

    text = text_of(sys.stdin.buffer.read(), "Standard input") if prompt == "-" else prompt
    if not text.strip():
        raise UsageError("The prompt is empty", hint='af run "…"')
    if "\0" in text:
        raise UsageError("The prompt contains NUL")
    parent = _asking_session(farm.root)
    chosen = {
        **options,
        "resumes": options.get("resume"),
        "cwd": str(options["cwd"]) if options.get("cwd") else None,
    }
    chosen.pop("resume", None)
    return SessionRequest(
        prompt=text,
        trigger_source=source or ("trigger" if parent and waits else "external"),
        parent=parent,
        checkout=str(farm.repository.checkout),
        **chosen,
    )


def _butler_of(root: Path, resumed: str | None) -> str | None:
    """The one whose session it is that goes on."""
    from agent_farm.sessions.stores import open_sessions

    return open_sessions(root).get(resumed)["butler"] if resumed else None


def _asking_session(root: Path) -> str | None:
    """The session that this command runs in: it holds a slot, and must not wait for one as well."""
    from agent_farm.errors import NotFound
    from agent_farm.sessions.stores import open_sessions

    id = os.environ.get("AF_SESSION")
    try:
        return id if id and open_sessions(root).get(id)["state"] == "running" else None
    except NotFound:
        return None


def _narrate(event: Mapping[str, Any]) -> None:
    match event["event"]:
        case "queued" if event.get("waiting"):
            narrate(f"session {event['session_id']} waits, {event['waiting']} in the queue")
        case "queued":
            narrate(f"session {event['session_id']}")
        case "running":
            narrate(f"{event['runtime']} runs")
        case "tool":
            narrate(f"  {event['name']}{' failed' if event.get('failed') else ''}")


def show_result(result: SpawnerResult, as_json: bool) -> int:
    timed_out = result.failure == "time-limit"
    if as_json:
        answer_json({"result": result.to_json()})
        return 0 if result.success else TimedOut.exit_code if timed_out else 1
    if result.output:
        answer(printable(result.output) if sys.stdout.isatty() else result.output.removesuffix("\n"))
    if not result.success:
        hint = f"af sessions {result.session_id}" if result.session_id else "af sessions"
        if timed_out:
            raise TimedOut("The session timed out", why=result.error, hint=hint)
        raise AgentFarmError("The session failed", why=result.error, hint=hint)
    return 0
