"""What several commands share: opening the farm, completing ids, asking a question."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from agent_farm.builders.status import STATES
from agent_farm.cli.output import is_interactive, narrate, printable
from agent_farm.consent import Ask, Request
from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.farm.farm import Farm, Step, open_farm

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def current_farm(
    *,
    tolerant: bool = False,
    tell: Callable[[str], None] = lambda text: narrate(printable(text)),
    step: Step = lambda what, done, total: None,
) -> Farm:
    """The farm here. What only looks, talks or stops is `tolerant`: of a typo in the settings it warns."""
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
    """How to put the consent question, or None where nobody sits at a terminal."""
    return _ask if is_interactive() else None


def confirm(question: str) -> bool:
    return bool(click.confirm(question, default=False, err=True))


def _ask(requests: Sequence[Request]) -> bool:
    narrate("This repository wants:")
    for request in requests:
        narrate(f"  {request.shown}")
    return confirm("Agree, now and as long as it stays like this?")


def complete_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids, and for a command that takes several the words that stand for many."""
    if incomplete.startswith("@") and param.nargs != 1:
        words = (f"@{word}" for word in ("needs-you", "landed", *STATES))
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]

    def items(farm: Farm) -> list[CompletionItem]:
        records = farm.registry.read()
        found = {id: record.title for id, record in records.items()} | _titles_elsewhere(farm)
        return [CompletionItem(id, help=title[:60]) for id, title in found.items()]

    return completed(items, incomplete)


def _titles_elsewhere(farm: Farm) -> dict[str, str]:
    """Of builders on other machines, by their ids."""
    if not farm.paths.fleet.exists():
        return {}
    from agent_farm.fleet.book import read_book

    return {id: placed.title for id, placed in read_book(farm).builders.items()}


def complete_machines(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    def items(farm: Farm) -> list[CompletionItem]:
        from agent_farm.fleet.book import read_book

        return [CompletionItem(host) for host in ("local", *read_book(farm).machines)]

    return completed(items, incomplete)


def completed(items: Callable[[Farm], list[CompletionItem]], incomplete: str) -> list[CompletionItem]:
    """Completion never fails in the user's face: outside a farm there is nothing to offer."""
    try:
        found = [item for item in items(open_farm(current_directory())) if item.value.startswith(incomplete)]
    except (AgentFarmError, OSError):
        return []
    return [_as_typed(item) for item in found if item.value.isprintable()]


def _as_typed(item: CompletionItem) -> CompletionItem:
    """bash, unlike zsh and fish, puts a name on the command line as it is: a branch may be called $(…)."""
    in_bash = os.environ.get("_AF_COMPLETE", "").startswith("bash")
    value = shlex.quote(item.value) if in_bash else item.value
    return CompletionItem(value, item.type, printable(item.help) if item.help else None)
