"""A command with commands below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_ANY_LENGTH = 1000


class Family(click.Group):
    """Shows the full summary of each of its commands in its help; click would cut them at the width.

    `default` is the command that the family's name alone stands for, with its options and arguments:
    `af sessions ID --json` is `af sessions show ID --json`.
    """

    def __init__(self, name: str, *, default: str | None = None, **settings: Any) -> None:
        super().__init__(name, **settings)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {*self.commands, *ctx.help_option_names}
        completes = ctx.resilient_parsing and not args  # what comes next may be a command
        if self.default and not completes and self._is_for(self.default, args[:1], own):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands, and what the default one takes."""
        found = super().shell_complete(ctx, incomplete)
        if self.default:
            command = self.commands[self.default]
            below = command.make_context(self.default, [], parent=ctx, resilient_parsing=True)
            words = [one for one in command.params if isinstance(one, click.Argument)][:1]
            for source in [command] if incomplete.startswith("-") else words:
                found += source.shell_complete(below, incomplete)
        return found

    def _is_for(self, default: str, first: list[str], own: set[str]) -> bool:
        takes_words = any(isinstance(param, click.Argument) for param in self.commands[default].params)
        return not first or (first[0] not in own and (takes_words or first[0].startswith("-")))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        shown = [(name, command) for name, command in found if command and not command.hidden]
        rows = [(name, command.get_short_help_str(_ANY_LENGTH)) for name, command in shown]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
