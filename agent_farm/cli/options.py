"""What several commands share: opening the farm, asking for consent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_farm.cli.output import is_interactive, narrate, printable
from agent_farm.consent import Ask, ConsentRequest
from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.pace import Step

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def current_farm(
    *,
    tolerant: bool = False,
    tell: Callable[[str], None] = lambda text: narrate(printable(text)),
    step: Step = lambda what, done, total: None,
) -> Farm:
    """The farm here. To `tolerant` commands, which only look, talk or stop, bad settings are a warning."""
    farm = open_farm(current_directory(), tell, step=step)
    if not tolerant:
        farm.settings.require_good()
    for problem in farm.settings.problems:
        why = f" ({problem.why})" if problem.why else ""
        narrate(f"warning: {printable(problem.what + why)}")
    return farm


def current_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise AgentFarmError(
            "The current directory was deleted", hint="cd to a directory that exists"
        ) from None


def json_option() -> click.Option:
    return click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object instead of text.")


def text_of(data: bytes, where: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{where} is not UTF-8 text", why=str(error)) from error


def asker() -> Ask | None:
    """How to ask for consent, or None without a terminal."""
    return _ask if is_interactive() else None


def confirm(question: str) -> bool:
    return bool(click.confirm(question, default=False, err=True))


def _ask(requests: Sequence[ConsentRequest]) -> bool:
    narrate("This repository wants:")
    for request in requests:
        narrate(f"  {request.shown}")
    return confirm("Approve this, now and as long as it does not change?")


def tell_who_is_awaited(client: str) -> None:
    """Tells a person who typed a command that is meant for programs why nothing happens."""
    if sys.stdin and sys.stdin.isatty():
        narrate(f"Waiting for {client} on standard input; --help says how to set one up. Ctrl-C ends it.")
