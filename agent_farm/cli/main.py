"""`af`: the table of commands, each imported when it is called, and the one place that catches errors."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import click

from agent_farm import __version__
from agent_farm.cli.command_table import ALSO_CALLED, COMMANDS, SECTIONS
from agent_farm.cli.output import answer, narrate, show_bug, show_error
from agent_farm.cli.quick_start import load_libraries
from agent_farm.errors import AgentFarmError, ConsentNeeded, UsageError, as_farm_error, nearest
from agent_farm.search_path import leave_relative_entries_out

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_INTERRUPTED = 130
_BUG = 3
_HINT_LENGTH = 300
# Raised for a group without a command; before click 8.2 that was no error.
_HELP_WANTED = getattr(click.exceptions, "NoArgsIsHelpError", ())


class LazyGroup(click.Group):
    """Knows every command's name and one line of help; imports a command's module only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        load_libraries()
        command = getattr(import_module(f"agent_farm.cli.{entry.module}"), entry.attribute)
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes from the table: click's own way loads each matching command for its help."""
        from click.shell_completion import CompletionItem

        named = [(name, entry) for name, entry in COMMANDS.items() if name.startswith(incomplete)]
        found = [CompletionItem(name, help=entry.help) for name, entry in named]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            close = ALSO_CALLED.get(args[0].lower()) or nearest(args[0], COMMANDS)
            page = f"{close} --help" if close in COMMANDS else close or "--help"
            raise UsageError(
                f"No command {args[0]}", why=f"Did you mean {close}?" if close else None, hint=f"af {page}"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for section in SECTIONS:
            rows = [
                (name.ljust(width), entry.help)
                for name, entry in COMMANDS.items()
                if entry.section == section
            ]
            if rows:
                with formatter.section(section):
                    formatter.write_dl(rows)


def _print_skill(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from agent_farm.farm.scaffolding import SKILL

        answer(SKILL.read_text(encoding="utf-8"), end="")
        context.exit()


@click.group(
    cls=LazyGroup,
    name="af",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="af", message="%(prog)s %(version)s")
@click.option(
    "--skill",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_skill,
    help="Print what an AI session has to know to drive a farm, as a SKILL.md.",
)
def cli() -> None:
    """Give each task its own git worktree, branch and tmux session in which an AI CLI works.

    \b
      af spawn "Fix the login redirect"     a builder starts to work
      af status                             all builders at a glance
      af attach task-a7f3-x9k2              watch and talk
      af merge task-a7f3-x9k2               land the work
      af prune                              remove what is finished and landed
    """


def main(argv: Sequence[str] | None = None) -> NoReturn:
    arguments = list(sys.argv[1:] if argv is None else argv)
    _leave(run(arguments))


def _leave(code: int) -> NoReturn:
    """Exits without Python's clean-up, a seventh of a short command, if nothing depends on it."""
    if threading.active_count() == 1 and not atexit._ncallbacks():
        with suppress(OSError, ValueError):  # reported as Python does it
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command; every way it can end is turned into an exit code here and nowhere else."""
    _open_missing_streams()
    leave_relative_entries_out()
    try:
        return _ended(arguments or _alone())
    except OSError as error:  # even the error could not be printed
        _silence_stdout()
        show_error(as_farm_error(error), as_json=False)
        return 1


def _alone() -> list[str]:
    """`af` alone in a terminal is the board; elsewhere, and outside of a repository, it is the help."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "dumb") == "dumb":
        return []
    from pathlib import Path

    from agent_farm.git.locate import locate

    try:
        locate(Path.cwd())
    except (AgentFarmError, OSError):
        return []
    return ["board"]


def _ended(arguments: list[str]) -> int:
    as_json = "--json" in arguments
    try:
        result = cli.main(arguments, prog_name="af", standalone_mode=False)
        if not sys.stdout.closed:  # the library of `af acp` closes it with its pipe
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except AgentFarmError as error:
        show_error(_with_yes(error, arguments), as_json=as_json)
        return error.exit_code
    except _HELP_WANTED as error:
        narrate(error.format_message())
        return 2
    except click.ClickException as error:
        show_error(_from_click(error), as_json=as_json)
        return 2
    except (KeyboardInterrupt, click.Abort):
        if sys.stderr.isatty():
            narrate("")  # puts the prompt below the ^C
        return _INTERRUPTED
    except BrokenPipeError:
        _silence_stdout()
        return 1
    except OSError as error:
        show_error(as_farm_error(error), as_json=_can_answer() and as_json)
        return 1
    except Exception as error:
        show_bug(error, as_json=as_json)
        return _BUG


def _with_yes(error: AgentFarmError, arguments: list[str]) -> AgentFarmError:
    """Adds how to agree: the same command with --yes if it has that option, else `af config agree`."""
    if isinstance(error, ConsentNeeded) and error.hint is None:
        from agent_farm.consent import HINT
        from agent_farm.launch import as_command

        command = cli.get_command(click.Context(cli), arguments[0])
        if not any("--yes" in parameter.opts for parameter in (command.params if command else ())):
            error.hint = HINT
            return error
        again = as_command("af", arguments[0], "--yes", *arguments[1:])
        error.hint = again if len(again) <= _HINT_LENGTH else f"af {arguments[0]} --yes …"
    return error


def _from_click(error: click.ClickException) -> AgentFarmError:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "af"
    what = error.format_message()
    for type_name, word in (("valid integer range", "whole number"), ("valid float range", "number")):
        what = what.replace(f"is not a {type_name}", f"is not a {word}")
    takes_text = context is not None and any(
        isinstance(one, click.Argument) for one in context.command.params
    )
    dashed = isinstance(error, click.NoSuchOption) and error.option_name[:2] != "--" and takes_text
    why = "Text that begins with a dash goes after --." if dashed else None
    return UsageError(what, why=why, hint=f"{path} --help")


def _can_answer() -> bool:
    """Whether stdout can still be written to; if its disk is full, buffered text is dropped."""
    try:
        sys.stdout.flush()
    except OSError:
        _silence_stdout()
        return False
    return True


def _silence_stdout() -> None:
    """The reader went away (`af status | head`), so nothing more may be written at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_missing_streams() -> None:
    """A stream that the caller closed (`>&-`) becomes /dev/null, before an opened file takes its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open("/dev/null", mode))  # noqa: SIM115
