"""`af adapter`: the shipped adapter executables."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from agent_farm.cli.output import answer
from agent_farm.errors import UsageError, nearest
from agent_farm.runtimes.executables.commands import main
from agent_farm.runtimes.executables.shipped import EXECUTABLES, executable_path


def complete_adapters(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in ("path", *EXECUTABLES) if name.startswith(incomplete)]


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("name", shell_complete=complete_adapters)
@click.argument("words", metavar="spawn|resume|check_status …", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def adapter(ctx: click.Context, name: str, words: tuple[str, ...]) -> None:
    """Run one of the adapter executables that af ships, or print its file.

    \b
      af adapter path codex-cli
      af adapter codex-cli spawn BRIEF STATE PROMPT     prints the session id
      af adapter codex-cli resume ID STATE PROMPT
      af adapter codex-cli check_status ID              pending, active, completed or failed

    The names are codex-cli, github-copilot and claude-mcp. Exit codes: 0 done, 1 failed, 2 wrong arguments,
    3 no such session, 4 the CLI is not installed, 5 the session is still at work.
    """
    wanted = words[0] if name == "path" and len(words) == 1 else name
    if wanted not in EXECUTABLES:
        close = nearest(wanted, EXECUTABLES)
        raise UsageError(
            f"No adapter {wanted}",
            why=f"There are: {', '.join(EXECUTABLES)}",
            hint=f"af adapter path {close}" if close else "af adapter --help",
        )
    if name == "path":
        answer(str(executable_path(wanted)))
        return
    ctx.exit(main(wanted, words))
