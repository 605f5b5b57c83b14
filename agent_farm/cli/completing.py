"""What Tab offers for values that name something in the farm, by field of the verb's request."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from agent_farm.builders.status import STATES
from agent_farm.cli.options import current_directory
from agent_farm.cli.output import printable
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.git.git_process import ask_git
from agent_farm.operations.operation import Context
from agent_farm.operations.requests import read_request
from agent_farm.operations.table import load
from agent_farm.runtimes import adapter_names
from agent_farm.sessions.trigger_sources import PLAIN_SOURCES, SCHEDULE_PREFIX

if TYPE_CHECKING:
    from agent_farm.cli.options import Complete

_MOST = 500
Values = Callable[[Farm, click.Context, str], Iterable[str | CompletionItem]]


def complete_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids, and for a command that takes several also the words that stand for many."""
    if incomplete.startswith("@") and param.nargs != 1:
        words = (f"@{word}" for word in ("needs-you", "landed", *STATES))
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]

    def items(farm: Farm) -> list[CompletionItem]:
        records = farm.registry.read()
        found = {id: record.title for id, record in records.items()} | _titles_elsewhere(farm)
        return [CompletionItem(id, help=title[:60]) for id, title in found.items()]

    return completed(items, incomplete)


def _titles_elsewhere(farm: Farm) -> dict[str, str]:
    """Titles of builders on other machines, by id."""
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
    """Completion never shows an error: outside a farm there is nothing to offer."""
    try:
        found = [item for item in items(open_farm(current_directory())) if item.value.startswith(incomplete)]
    except (AgentFarmError, OSError):
        return []
    return [_as_typed(item) for item in found if item.value.isprintable()]


def _as_typed(item: CompletionItem) -> CompletionItem:
    """bash, unlike zsh and fish, inserts a name unquoted: a branch may be called $(…)."""
    in_bash = os.environ.get("_AF_COMPLETE", "").startswith("bash")
    value = shlex.quote(item.value) if in_bash else item.value
    return CompletionItem(value, item.type, printable(item.help) if item.help else None)


def offered(values: Values) -> Complete:
    """Offers all values that begin with the typed text."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        def items(farm: Farm) -> list[CompletionItem]:
            found = values(farm, ctx, incomplete)
            return [one if isinstance(one, CompletionItem) else CompletionItem(one) for one in found]

        return completed(items, incomplete)

    return complete


def in_a_list(complete: Complete) -> Complete:
    """Completes the last of several values separated by commas."""

    def last(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, word = incomplete.rpartition(",")
        chosen = before.split(",")
        found = complete(ctx, param, word)
        return [
            CompletionItem(before + comma + one.value, help=one.help)
            for one in found
            if one.value not in chosen
        ]

    return last


def _answer(farm: Farm, verb: str, **request: Any) -> Any:
    operation = load(verb)
    return operation.answer_to(Context(farm), read_request(operation, request))


@offered
def complete_butlers(farm: Farm, ctx: click.Context, word: str) -> Iterable[str]:
    from agent_farm.sessions.roster import butler_names

    return butler_names(farm.root)


@offered
def complete_sessions(farm: Farm, ctx: click.Context, word: str) -> Iterable[str]:
    return (one.id for one in _answer(farm, "sessions_list", limit=50).sessions)


@offered
def complete_session_sources(farm: Farm, ctx: click.Context, word: str) -> Iterable[str]:
    return (*PLAIN_SOURCES, *(SCHEDULE_PREFIX + one.name for one in _answer(farm, "schedule_list").schedules))


@offered
def complete_schedules(farm: Farm, ctx: click.Context, word: str) -> Iterable[str]:
    return (one.name for one in _answer(farm, "schedule_list").schedules)


@offered
def complete_credentials(farm: Farm, ctx: click.Context, word: str) -> Iterable[str]:
    return (one.name for one in _answer(farm, "credentials_list").credentials)


@offered
def complete_state_keys(farm: Farm, ctx: click.Context, word: str) -> Iterable[str]:
    return (key for key in _answer(farm, "state_list").state)


@offered
def complete_worktrees(farm: Farm, ctx: click.Context, word: str) -> Iterable[str]:
    return (one.branch for one in _answer(farm, "import", dry_run=True).found if one.branch)


@offered
def complete_items(farm: Farm, ctx: click.Context, word: str) -> Iterable[str]:
    from agent_farm.operations.spawn_items import read_spec

    spec = ctx.params.get("spec")
    if not spec:
        return ()
    return ("all", *(item.key for item in read_spec(farm, spec, farm.repository.head().commit).items))


@offered
def complete_protocols(farm: Farm, ctx: click.Context, word: str) -> Iterable[str]:
    return (path.parent.name for path in farm.root.glob("codev/protocols/*/protocol.md"))


@offered
def complete_projects(farm: Farm, ctx: click.Context, word: str) -> Iterable[CompletionItem]:
    names = (path.stem.partition("-") for path in sorted(farm.root.glob("codev/specs/*-*.md")))
    return (CompletionItem(id, help=name) for id, _, name in names)


@offered
def complete_runtimes(farm: Farm, ctx: click.Context, word: str) -> Iterable[str]:
    return adapter_names(farm.root)


@offered
def complete_branches(farm: Farm, ctx: click.Context, word: str) -> Iterable[str]:
    names = ("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes")
    _, found, _ = ask_git(farm.root, *names)
    return found.decode("utf-8", "replace").splitlines()


@offered
def complete_removed(farm: Farm, ctx: click.Context, word: str) -> Iterable[str]:
    from agent_farm.farm.trash import list_kept

    return dict.fromkeys(one.record.id for one in list_kept(farm))


@offered
def _tracked(farm: Farm, ctx: click.Context, word: str) -> Iterable[str]:
    return _named_by_git(farm, word, "ls-files", "-z")


@offered
def _directories(farm: Farm, ctx: click.Context, word: str) -> Iterable[str]:
    return _named_by_git(farm, word, "ls-tree", "-r", "-d", "-z", "--name-only", "HEAD")


def _named_by_git(farm: Farm, word: str, *question: str) -> Iterable[str]:
    _, found, _ = ask_git(farm.repository.checkout, *question)
    names = found.decode("utf-8", "replace").split("\0")
    return [name for name in names if name and name.startswith(word)][:_MOST]


@offered
def _states(farm: Farm, ctx: click.Context, word: str) -> Iterable[str]:
    return STATES


@offered
def complete_keys(farm: Farm, ctx: click.Context, word: str) -> Iterable[str]:
    from agent_farm.tmux.keys import NAMED

    return NAMED


@offered
def complete_timezones(farm: Farm, ctx: click.Context, word: str) -> Iterable[str]:
    from zoneinfo import available_timezones

    return sorted(available_timezones())


complete_states = in_a_list(_states)
complete_files = in_a_list(_tracked)
complete_directories = in_a_list(_directories)
complete_after = in_a_list(complete_ids)
complete_runtimes_of_several = in_a_list(complete_runtimes)
complete_path = click.Path().shell_complete
