"""`af completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from agent_farm.cli.output import answer

SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog="""\b
Set it up once:
  bash   af completion bash > ~/.local/share/bash-completion/completions/af
  zsh    af completion zsh > "${fpath[1]}/_af"
  fish   af completion fish > ~/.config/fish/completions/af.fish
"""
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script of a shell: commands, options, builder ids, protocols, specs, runtimes."""
    from agent_farm.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    for name in ("af", "agent-farm"):  # one program, which knows itself as af
        answer(kind(cli, {}, name, "_AF_COMPLETE").source())
