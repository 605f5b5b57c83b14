"""A command with commands below it."""

from __future__ import annotations

import click

_ANY_LENGTH = 1000


class Family(click.Group):
    """Shows the full summary of each of its commands in its help; click would cut them at the width."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        shown = [(name, command) for name, command in found if command and not command.hidden]
        rows = [(name, command.get_short_help_str(_ANY_LENGTH)) for name, command in shown]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
