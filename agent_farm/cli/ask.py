"""`af ask`, `af chat` and the sources they read."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem
from msgspec.structs import asdict

from agent_farm.ask.config_file import ConfigManager
from agent_farm.cli.derived import Way, command_of, context_of
from agent_farm.cli.family import Family
from agent_farm.cli.fields import option_of
from agent_farm.cli.output import answer, narrate, narrate_hint, printable
from agent_farm.errors import AgentFarmError
from agent_farm.operations.sources import (
    AllSources,
    Answered,
    OneSource,
    RemovedSource,
    SourceShown,
    ask_sources,
    runner,
)

# Real languages use joiners and other invisible characters: only what moves a cursor is removed.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def complete_sources(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    try:
        config = ConfigManager()
        names = [*config.sources, *config.groups]
    except (AgentFarmError, OSError):
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _request(values: dict[str, Any]) -> dict[str, Any]:
    """`-` is standard input; without a question it is empty, and the verb's refusal shows how to ask."""
    question = values["question"]
    if question == "-":
        question = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    return {"question": question or ""}


def _show(found: Answered) -> None:
    text = found.answer.removesuffix("\n")
    answer(_CONTROL.sub("", text) if sys.stdout.isatty() else text)


_SOURCES = option_of("ask_sources", "sources", "--source", "-s", metavar="NAME", complete=complete_sources)
_AGENT = option_of("ask_sources", "agent", "--agent", metavar="NAME")
ask = command_of(
    Way("ask_sources", _show, build=_request),
    name="ask",
    help="""Ask a question about local sources; your own AI CLI answers it.

    It runs without MCP servers, in a directory that contains links to the sources and nothing else and
    is removed afterwards. The answer is on stdout, progress on stderr.

    \b
      af sources add app ~/code/app
      af ask -s app "Where are requests retried?"
      af ask -s app -s docs - < question.md
    """,
    params={
        "question": click.Argument(["question"], required=False),
        "sources": _SOURCES,
        "agent": _AGENT,
    },
)


@click.command(params=[_SOURCES, _AGENT])
def chat(sources: tuple[str, ...], agent: str | None) -> None:
    """Talk with your own AI CLI about local sources, in this terminal.

    \b
      af chat -s app -s docs
    """
    runner(context_of(ask_sources), agent).chat(sources=sources)


def _show_added(found: OneSource) -> None:
    one = found.source
    answer(f"{one.name}: {one.type} {printable(one.path)}")
    narrate_hint(f'af ask -s {one.name} "question"')


def _show_all(found: AllSources) -> None:
    if not found.sources:
        narrate("There are no sources yet.")
        narrate_hint("af sources add NAME PATH|URL")
    for line in _table(found.sources):
        answer(line)


def _table(rows: Sequence[SourceShown]) -> list[str]:
    name = max((len(row.name) for row in rows), default=0)
    kind = max((len(row.type) for row in rows), default=0)
    return [
        f"{row.name:<{name}}  {row.type:<{kind}}  {printable(row.url or row.path)}"
        + (f"  @{row.branch}" if row.branch else "")
        + (f"  @{row.commit[:12]}" if row.commit else "")
        + (f"  ({printable(row.problem)})" if row.problem else "")
        for row in rows
    ]


def _show_one(found: OneSource) -> None:
    for key, value in asdict(found.source).items():
        if value is not None:
            answer(f"{key + ':':<9}{printable(str(value))}")


def _show_removed(found: RemovedSource) -> None:
    answer(f"removed {found.removed}")
    if found.kept:
        narrate(f"Its clone has changes of its own and is kept: {printable(found.kept)}")


_NAMED = {"name": complete_sources, "names": complete_sources}
sources = Family(
    "sources",
    help="""The directories, files and git repositories that `af ask` may read.

    \b
      af sources add app ~/code/app
      af sources add notes ~/notes.md
      af sources add click https://github.com/pallets/click --branch main
    """,
    commands=[
        command_of(
            Way("sources_add", _show_added),
            metavars={"target": "PATH|URL", "branch": "NAME", "commit": "ID"},
        ),
        command_of(Way("list_sources", _show_all), name="list"),
        command_of(Way("sources_show", _show_one), complete=_NAMED),
        command_of(Way("sources_remove", _show_removed), complete=_NAMED),
        command_of(Way("sources_update", lambda one: answer(f"updated {one.name}")), complete=_NAMED),
    ],
)
