"""Every command of `af`, with those below it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import click

from agent_farm.cli.derived import VerbCommand, word_of
from agent_farm.cli.family import Family
from agent_farm.cli.main import cli


def top() -> click.Context:
    return click.Context(cli, info_name="af", **cli.context_settings)


def all_commands(
    group: click.Group = cli, context: click.Context | None = None, path: str = "af"
) -> Iterator[tuple[str, click.Command, click.Context]]:
    context = context or top()
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if command.hidden:
            continue
        below = click.Context(command, info_name=name, parent=context)
        yield f"{path} {name}", command, below
        if isinstance(command, click.Group):
            yield from all_commands(command, below, f"{path} {name}")


def commands_of_verbs() -> dict[str, list[str]]:
    """For each verb what is typed at the terminal; a verb that only the other doors have is missing."""
    found = defaultdict[str, list[str]](list)
    for path, command, context in all_commands():
        family = context.parent.command if context.parent else None
        if isinstance(family, Family) and family.default == context.info_name:
            path = path.rpartition(" ")[0]
        for verb, param in command.ways if isinstance(command, VerbCommand) else ():
            found[verb].append(f"{path} {word_of(param)}" if param else path)
    return found
