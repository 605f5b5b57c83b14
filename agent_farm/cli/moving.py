"""`af import`, `af eject`, `af uninstall`: moving to af and away from it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from agent_farm.cli.completing import complete_path, complete_worktrees
from agent_farm.cli.derived import Typed, Way, command_of
from agent_farm.cli.options import confirm
from agent_farm.cli.output import answer, is_interactive, narrate, narrate_hint, printable
from agent_farm.errors import UsageError
from agent_farm.launch import as_command
from agent_farm.operations.eject import Ejected
from agent_farm.operations.importing import AllImported, Candidate, Imported
from agent_farm.operations.uninstall import LeftThere, Step, Uninstalled
from agent_farm.paths import user_settings_file, user_state_directory


def _agree(typed: Typed, question: str, *, yes: bool, show: Any) -> int | None:
    """Shows first what it would do; without a terminal it needs --yes."""
    if yes or typed.request.dry_run:
        return None
    for part in typed.operation.run(typed.context, replace(typed.request, dry_run=True)):
        show(part)
    if is_interactive():
        return None if confirm(question) else 1
    raise UsageError("Nothing was done", why="Pass --yes to go ahead.")


def _show_imported(part: Candidate | Imported) -> None:
    if isinstance(part, Imported):
        answer(part.id)
        narrate(printable(f"{part.branch} is in {part.worktree}"))
        narrate_hint(as_command("af", "resume", part.id))
        return
    made = f", by {part.tool}" if part.tool else ""
    answer(printable(f"{part.branch or '(no branch)'}  {part.worktree}{made}"))
    if part.problem:
        narrate(printable(f"  cannot be taken: {part.problem}"))
    elif part.moves_to == part.worktree:
        narrate("  would stay where it is; its branch stays yours")
    else:
        narrate(printable(f"  would be moved to {part.moves_to}; its branch stays yours"))


def _agree_to_import(typed: Typed) -> int | None:
    if not typed.request.worktrees:
        return None
    return _agree(typed, "Take it?", yes=typed.request.yes, show=_show_imported)


def _conclude_import(found: AllImported) -> None:
    if not (found.found or found.imported or found.failed):
        narrate("There is no worktree that is not a builder's.")
    elif any(one.problem is None for one in found.found):
        narrate_hint("af import WORKTREE")


import_ = command_of(
    Way(
        "import",
        _show_imported,
        _conclude_import,
        build=lambda values: {"dry_run": values["dry_run"] or not values["worktrees"]},
        before=_agree_to_import,
    ),
    complete={"worktrees": complete_worktrees},
    epilog="Without a WORKTREE, lists those that can be taken. Shows what it is about to do and asks first; "
    "without a terminal, pass --yes.",
)


def _show_ejected(part: Ejected) -> None:
    answer(printable(f"{part.id}: {part.branch} in {part.worktree}"))
    if part.prompt:
        narrate(f"What it was to do is in {part.prompt}")


eject = command_of(Way("eject", _show_ejected), metavars={"to": "DIRECTORY"}, complete={"to": complete_path})


def _show_step(part: Step | LeftThere) -> None:
    answer(printable(f"{'stays' if isinstance(part, LeftThere) else 'removed'}  {part.what}"))


def _show_plan(part: Step | LeftThere) -> None:
    narrate(printable(f"{'stays' if isinstance(part, LeftThere) else 'goes'}  {part.what}"))


def _agree_to_uninstall(typed: Typed) -> int | None:
    return _agree(typed, "Remove it?", yes=typed.values["yes"], show=_show_plan)


def _last_steps(found: Uninstalled) -> None:
    places = (user_state_directory(), user_settings_file().parent)
    narrate("Once no repository is a farm any more, for your user:")
    installer = "pipx" if (Path(sys.prefix) / "pipx_metadata.json").exists() else "pip"
    narrate_hint(f"{installer} uninstall codev-agent-farm && {as_command('rm', '-rf', *places)}")


uninstall = command_of(
    Way("uninstall", _show_step, _last_steps, before=_agree_to_uninstall),
    also=[click.Option(["--yes", "-y"], is_flag=True, help="Do it without asking.")],
)
