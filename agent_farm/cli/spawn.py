"""`af spawn`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_farm.builders.modes import Flags, choose_mode
from agent_farm.cli.options import (
    asker,
    builder_json,
    complete_projects,
    complete_protocols,
    complete_runtimes,
    current_farm,
    json_option,
    text_of,
    yes_option,
)
from agent_farm.cli.output import answer, answer_json, narrate, narrate_hint, printable
from agent_farm.errors import UsageError
from agent_farm.settings import PERMISSIONS

if TYPE_CHECKING:
    from agent_farm.builders.record import BuilderRecord
    from agent_farm.farm.farm import Farm
    from agent_farm.farm.plan import Plan

EPILOG = """\b
Modes, with an example each:
  task      af spawn "Fix the login redirect"
            af spawn "Fix the login redirect" --files src/auth.py,src/login.py
            af spawn --task "Refactor the logging"
            af spawn --task-file todo.md        (- reads standard input)
  spec      af spawn --project 0009             (codev/specs/0009-*.md)
  protocol  af spawn --protocol cleanup         (codev/protocols/cleanup/)
            af spawn --protocol experiment --args '{"hypothesis": "Redis is faster"}'
  shell     af spawn --shell                    (no prompt, no role)
            af spawn --shell --role custom.md

\b
A task that begins with a dash goes after --:
  af spawn -- "-rf is not handled by the parser"
"""


@click.command(epilog=EPILOG)
@click.argument("words", metavar="[TASK]", nargs=-1)
@click.option("--project", "-p", metavar="ID", help="Implement a spec.", shell_complete=complete_projects)
@click.option("--task", metavar="TEXT", help="The task, as an option.")
@click.option("--task-file", metavar="PATH", help="Read the task from a file, or from standard input with -.")
@click.option("--protocol", metavar="NAME", help="Run a protocol.", shell_complete=complete_protocols)
@click.option("--shell", is_flag=True, help="Start the runtime with neither prompt nor role.")
@click.option(
    "--files",
    metavar="A,B",
    multiple=True,
    help="Files that matter for the task; comma-separated, or given again.",
)
@click.option("--args", metavar="JSON", help="Arguments of the protocol; a JSON object.")
@click.option("--role", metavar="FILE", type=click.Path(path_type=Path), help="System prompt to use.")
@click.option("--no-role", is_flag=True, help="Use no system prompt.")
@click.option(
    "--runtime",
    metavar="NAME",
    help="Runtime to start; af runtimes lists them.",
    shell_complete=complete_runtimes,
)
@click.option("--model", metavar="M", help="Model to ask the runtime for.")
@click.option(
    "--permissions",
    type=click.Choice(PERMISSIONS),
    help="What the builder may do without asking: ask: nothing; edit: change files in its worktree, but run "
    "no command; all: everything. Default: spawn.permissions, else edit.",
)
@click.option("--base", metavar="REF", help="Revision to start from; default: HEAD of this checkout.")
@click.option("--fetch", is_flag=True, help="Fetch the base's remote first, and start from what it has.")
@click.option("--branch", metavar="EXISTING", help="Go on with a branch that exists.")
@click.option("--attach", is_flag=True, help="Attach to the builder at once.")
@click.option("--ephemeral", is_flag=True, help="Prune it when its runtime ends, if its work has landed.")
@click.option("--dry-run", is_flag=True, help="Show what would be made, and make nothing.")
@yes_option
@json_option
def spawn(
    words: tuple[str, ...],
    project: str | None,
    task: str | None,
    task_file: str | None,
    protocol: str | None,
    shell: bool,
    files: tuple[str, ...],
    args: str | None,
    role: Path | None,
    no_role: bool,
    runtime: str | None,
    model: str | None,
    permissions: str | None,
    base: str | None,
    fetch: bool,
    branch: str | None,
    attach: bool,
    ephemeral: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Start a builder in its own worktree, branch and tmux session."""
    if attach and as_json:
        raise UsageError("Flags are mutually exclusive: --attach, --json", hint="af spawn --help")
    text = _text(words)
    flags = Flags(text, _task(text, task, task_file), project, protocol, shell, _split(files), args)
    mode = choose_mode(flags)
    from agent_farm.farm.plan import SpawnOrder, preflight
    from agent_farm.farm.spawn import spawn as carry_out

    farm = current_farm()
    if attach and not dry_run:
        from agent_farm.cli.look import require_attachable

        require_attachable(farm)
    order = SpawnOrder(
        mode,
        runtime,
        model,
        permissions,
        base,
        branch,
        fetch,
        role,
        no_role,
        ephemeral,
        yes,
        asker(),
    )
    plan = preflight(farm, order)
    for note in plan.notes:
        narrate(note)
    if dry_run:
        _show_plan(farm, plan, as_json)
        return
    record = carry_out(farm, plan)
    _show(farm, record, as_json)
    if attach:
        from agent_farm.cli.look import attach_to

        attach_to(farm, record)


def _show(farm: Farm, record: BuilderRecord, as_json: bool) -> None:
    if as_json:
        answer_json({"builder": builder_json(farm, record.id)})
        return
    answer(record.id)
    narrate(printable(f"{record.runtime} starts on {record.branch} in {record.worktree}"))
    narrate_hint(f"af attach {record.id}")


def _text(words: tuple[str, ...]) -> str | None:
    """The task; several words are one that was not quoted."""
    if len(words) < 2:
        return words[0] if words else None
    raise UsageError(
        f"Got {len(words)} words where one task was expected",
        why="Put the task in quotes.",
        hint=f"af spawn {_quoted(' '.join(words))}",
    )


def _quoted(text: str) -> str:
    """For a shell; in the quotes a person would type, where nothing in the text means something in them."""
    import shlex

    quoted = shlex.quote(text) if any(char in text for char in '"\\$`!') else f'"{text}"'
    return f"-- {quoted}" if text.startswith("-") else quoted


def _task(text: str | None, task: str | None, file: str | None) -> str | None:
    if file is None:
        return task
    other = "as --task" if task is not None else "as an argument" if text is not None else None
    if other:
        raise UsageError(
            "Give the task once", why=f"It is there {other} and as --task-file.", hint="af spawn --help"
        )
    if file == "-":
        return text_of(sys.stdin.buffer.read(), "Standard input")
    return text_of(_read(Path(file)), file)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"Cannot read the task from {path}", why=error.strerror) from error


def _split(files: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name.strip() for part in files for name in part.split(",") if name.strip())
    if files and not names:
        raise UsageError("--files names no file", hint="af spawn --help")
    return names


def _show_plan(farm: Farm, plan: Plan, as_json: bool) -> None:
    from dataclasses import asdict

    from agent_farm.farm.spawn import config_of, free_name

    config: dict[str, object] = asdict(config_of(farm, plan, free_name(farm, plan, farm.registry.read())))
    if as_json:
        answer_json({"plan": config})
        return
    for name, value in config.items():
        if value not in (None, (), ""):
            answer(f"{name:<13} {_shown(value)}")
    answer(f"{'base_commit':<13} {plan.start.base_commit}")


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        text = ", ".join(map(str, value))
    elif isinstance(value, Mapping):
        import json

        text = json.dumps(value, ensure_ascii=False)
    else:
        text = str(value)
    return printable(text).replace("\n", "\n" + " " * 14)
