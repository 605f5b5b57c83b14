"""`af run`, `af trigger`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from agent_farm.cli.derived import Typed, Way, command_of
from agent_farm.cli.options import text_of
from agent_farm.cli.output import answer, narrate_hint, printable
from agent_farm.errors import AgentFarmError, TimedOut
from agent_farm.operations.trigger import Triggered
from agent_farm.sessions.session import SpawnerResult

RUN = """\
Run one headless session in the foreground. Ctrl-C cancels it; its record says so.

It works in the butler's own directory, or in --cwd, and may read the checkout you are in. The farm's
server runs it; it is started if needed and ends by itself. The session gets your shell's keys.

\b
  af run "Summarise the open TODOs in codev/"
  git diff | af run --context "Review this change" -
  af run --resume 3f2a "And which of them is the oldest?"
  af run --on fleet "Run the long tests and say which fail"
"""
TRIGGER = """\
Hand a prompt to the farm's server, which is started if needed; the session outlives this command.

\b
  af trigger "Check the nightly build"
  af trigger --no-wait "Tidy the changelog"
  af trigger --source route --context "From: the mailbox" "File this"
"""
CWD = click.Option(
    ["--cwd"],
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Directory to run in; default: the butler's own.",
)
NO_WAIT = click.Option(["--no-wait"], is_flag=True, help="Print the session's id and leave.")


def _request(own: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def build(values: dict[str, Any]) -> dict[str, Any]:
        prompt = values["prompt"]
        if prompt == "-":
            prompt = text_of(sys.stdin.buffer.read(), "Standard input")
        return {"prompt": prompt, "cwd": str(values["cwd"]) if values["cwd"] else None, **own(values)}

    return build


def waits(values: dict[str, Any]) -> dict[str, Any]:
    return {"wait": not values["no_wait"]}


def _end_as_by_ctrl_c(typed: Typed) -> None:
    """The session is then cancelled, and its record complete."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)


def show_triggered(found: Triggered) -> None:
    if found.result is not None:
        show_result(found.result)
    elif found.session_id:
        answer(found.session_id)
        narrate_hint(f"af sessions --follow {found.session_id}")


def show_result(result: SpawnerResult) -> None:
    if result.output:
        answer(printable(result.output) if sys.stdout.isatty() else result.output.removesuffix("\n"))
    if result.success:
        return
    hint = f"af sessions {result.session_id}" if result.session_id else "af sessions"
    if result.failure == "time-limit":
        raise TimedOut("The session timed out", why=result.error, hint=hint)
    raise AgentFarmError("The session failed", why=result.error, hint=hint)


def _params(**own: click.Parameter | None) -> dict[str, click.Parameter | None]:
    return {
        "cwd": CWD,
        **dict.fromkeys(("wait", "attached", "new_id", "for_home")),
        **own,
    }


run = command_of(
    Way(
        "trigger",
        show_triggered,
        build=_request(lambda values: {"attached": True}),
        before=_end_as_by_ctrl_c,
    ),
    name="run",
    help=RUN,
    params=_params(source=None),
    metavars={"prompt": "PROMPT|-"},
)

trigger = command_of(
    Way("trigger", show_triggered, build=_request(waits)),
    help=TRIGGER,
    params=_params(),
    also=[NO_WAIT],
    metavars={"prompt": "PROMPT|-"},
)
