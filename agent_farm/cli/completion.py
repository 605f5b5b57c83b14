"""`af completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from agent_farm.cli.output import answer

SHELLS = ("bash", "zsh", "fish")
# Only the shell itself can change its directory; the function passes everything else on to the program.
_CD = """\
af() {
    case "$1 ${2-}" in
        "cd -"*) shift; command af path "$@" ;;
        "cd "?*) shift; _af_place=$(command af path "$@") && cd -- "$_af_place" ;;
        *) command af "$@" ;;
    esac
}
"""
_CD_FISH = """\
function af
    if not test "$argv[1]" = cd; or test (count $argv) -lt 2
        command af $argv
    else if string match -q -- '-*' $argv[2]
        command af path $argv[2..]
    else
        set -l place (command af path $argv[2..]); and cd -- $place
    end
end
"""


@click.command(
    epilog="""\b
Set it up once:
  bash   af completion bash > ~/.local/share/bash-completion/completions/af
  zsh    af completion zsh > "${fpath[1]}/_af"
  fish   af completion fish > ~/.config/fish/completions/af.fish

\b
To have `af cd ID` go to a builder's worktree, in the shell's own start file:
  bash, zsh   eval "$(af completion bash --cd)"
  fish        af completion fish --cd | source
"""
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--cd", is_flag=True, help="Print the function for `af cd ID` instead.")
def completion(shell: str, cd: bool) -> None:
    """Print the completion script of a shell: commands, options, builders, protocols, specs, settings."""
    if cd:
        answer(_CD_FISH if shell == "fish" else _CD, end="")
        return
    from agent_farm.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    for name in ("af", "agent-farm"):  # one program, which calls itself af
        answer(kind(cli, {}, name, "_AF_COMPLETE").source())
