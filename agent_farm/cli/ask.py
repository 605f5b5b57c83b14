"""`af ask` and `af chat`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from agent_farm.cli.options import json_option
from agent_farm.cli.output import answer, answer_json, narrate, printable

F = TypeVar("F", bound=Callable[..., Any])
# An answer holds joiners and other invisible characters of real languages; only what moves a cursor goes.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def complete_sources(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from agent_farm.ask.uses import known_names
    from agent_farm.errors import AgentFarmError

    try:
        names = known_names()
    except (AgentFarmError, OSError):
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def sources_option(command: F) -> F:
    return click.option(
        "--source",
        "-s",
        "sources",
        metavar="NAME",
        multiple=True,
        shell_complete=complete_sources,
        help="A source to read, or a group of them; may be given several times.",
    )(command)


_agent_option = click.option(
    "--agent",
    metavar="NAME",
    help="Agent that answers; default: that of config.json, else [spawn] runtime.",
)


@click.command()
@click.argument("question", required=False)
@sources_option
@_agent_option
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End it after this long.",
)
@json_option
def ask(
    question: str | None,
    sources: tuple[str, ...],
    agent: str | None,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Ask a question about local sources; your own AI CLI answers it.

    It runs in a directory of its own that holds links to the sources and nothing else, without MCP servers,
    and is removed afterwards. The answer is on stdout, progress on stderr.

    \b
      af sources add app ~/code/app
      af ask -s app "Where are requests retried?"
      af ask -s app -s docs - < question.md
    """
    from agent_farm.ask import uses

    done = uses.ask(
        sources,
        _text(question),
        agent=agent,
        runtime=_farm_runtime(agent),
        timeout=timeout,
        narrate=_narrate,
    )
    if as_json:
        answer_json({**done})
        return
    text = done["answer"].removesuffix("\n")
    answer(_CONTROL.sub("", text) if sys.stdout.isatty() else text)


@click.command()
@sources_option
@_agent_option
def chat(sources: tuple[str, ...], agent: str | None) -> None:
    """Talk with your own AI CLI about local sources, in this terminal.

    \b
      af chat -s app -s docs
    """
    from agent_farm.ask import uses

    uses.chat(sources, agent=agent, runtime=_farm_runtime(agent), narrate=_narrate)


def _narrate(text: str) -> None:
    narrate(printable(text))


def _farm_runtime(agent: str | None) -> str | None:
    """`[spawn] runtime` of the farm that one is in; questions are asked outside of any, too."""
    if agent:
        return None
    from agent_farm.cli.options import current_farm
    from agent_farm.errors import AgentFarmError

    try:
        return current_farm().settings.text("spawn.runtime")
    except AgentFarmError:
        return None


def _text(question: str | None) -> str:
    """`-` is standard input; no question at all is an empty one, which is refused with the form."""
    if question == "-":
        return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    return question or ""
