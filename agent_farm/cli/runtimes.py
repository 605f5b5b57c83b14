"""`af runtimes`: what is installed and whether it matches its lock; `af adapter`: the shipped executables."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from agent_farm.cli.completing import complete_runtimes
from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.family import Family
from agent_farm.cli.output import answer, folded, narrate, printable, style
from agent_farm.errors import UsageError, nearest
from agent_farm.operations.runtimes import AllRuntimes, RuntimeChecked
from agent_farm.runtimes.executables.commands import main
from agent_farm.runtimes.executables.shipped import EXECUTABLES, executable_path


def _show(found: AllRuntimes) -> None:
    if found.problem:
        narrate(f"warning: {printable(found.problem)}")
    width = max(len(one.name) for one in found.runtimes)
    versions = max(len(one.version or "-") for one in found.runtimes)
    for one in found.runtimes:
        head = f"{one.name.ljust(width)}  {(one.version or '-').ljust(versions)}  "
        verdict, colour = ("not usable", "yellow") if one.problem else ("usable", "green")
        why = one.problem or one.note
        line = folded(f"{head}{verdict}{f': {why}' if why else ''}", indent=" " * len(head))
        answer(line.replace(f"  {verdict}", f"  {style(verdict, colour)}", 1))


def _show_check(found: RuntimeChecked) -> None:
    for one in found.findings:
        mark = style("ok", "green") if one.good else style("no", "red")
        answer(f"{mark}  {one.what}{f': {one.detail}' if one.detail else ''}")


runtimes = Family(
    "runtimes",
    default="list",
    help="""List AI CLIs and test their setup. Without a command it is `af runtimes list`.

    \b
      af runtimes               all of them, one line each
      af runtimes check codex   start it once, and report what it did
    """,
    commands=[
        command_of(Way("runtimes", _show), name="list"),
        command_of(
            Way("runtimes_check", _show_check),
            complete={"name": complete_runtimes},
            epilog="Exit code 1 when a check fails.",
        ),
    ],
)


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
      af adapter codex-cli check_status ID              pending, active, …

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
