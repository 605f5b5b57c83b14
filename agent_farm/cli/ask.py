"""`af ask` and `af chat`."""

from __future__ import annotations

import re
import sys
from typing import Any

import click
from click.shell_completion import CompletionItem

from agent_farm.cli.derived import Way, command_of, context_of
from agent_farm.cli.output import answer
from agent_farm.errors import AgentFarmError
from agent_farm.operations.sources import ASK_SOURCES, Answered, runner

# An answer holds joiners and other invisible characters of real languages; only what moves a cursor goes.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def complete_sources(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from agent_farm.ask.config_file import ConfigManager

    try:
        config = ConfigManager()
        names = [*config.sources, *config.groups]
    except (AgentFarmError, OSError):
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _sources() -> click.Option:
    return click.Option(
        ["--source", "-s", "sources"],
        metavar="NAME",
        multiple=True,
        shell_complete=complete_sources,
        help="A source to read, or a group of them; may be given several times.",
    )


def _agent() -> click.Option:
    return click.Option(
        ["--agent"],
        metavar="NAME",
        help="Agent that answers; default: that of config.json, else [spawn] runtime.",
    )


def _request(values: dict[str, Any]) -> dict[str, Any]:
    """`-` is standard input; no question at all is an empty one, which is refused with the form."""
    question = values["question"]
    if question == "-":
        question = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    names = ("sources", "agent", "timeout")
    return {**{name: values[name] for name in names}, "question": question or ""}


def _show(found: Answered) -> None:
    text = found.answer.removesuffix("\n")
    answer(_CONTROL.sub("", text) if sys.stdout.isatty() else text)


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
        "sources": _sources(),
        "agent": _agent(),
    },
    metavars={"timeout": "SECONDS"},
)


@click.command(params=[_sources(), _agent()])
def chat(sources: tuple[str, ...], agent: str | None) -> None:
    """Talk with your own AI CLI about local sources, in this terminal.

    \b
      af chat -s app -s docs
    """
    runner(context_of(ASK_SOURCES), agent).chat(sources=sources)
