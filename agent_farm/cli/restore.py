"""`af restore`."""

from __future__ import annotations

from typing import Any

import click

from agent_farm.cli.cells import cut, moment
from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.fields import offer
from agent_farm.cli.output import answer, narrate, narrate_hint, printable, terminal_width
from agent_farm.errors import UsageError
from agent_farm.operations.restore import AllRemoved, Restored


def _name_one(typed: dict[str, Any]) -> dict[str, Any]:
    if typed["id"] is None:
        why, hint = "--list shows what can be restored.", "af restore --list"
        raise UsageError("Name a builder", why=why, hint=hint)
    return {}


def _show_restored(found: Restored) -> None:
    builder = found.builder
    answer(printable(f"{builder.id} restored to {builder.worktree} on {builder.branch}"))
    narrate_hint(f"af {'diff' if builder.status.state == 'failed' else 'resume'} {builder.id}")


def _show_removed(found: AllRemoved) -> None:
    id_width, width = max((len(one.id) for one in found.removed), default=0), terminal_width()
    for one in found.removed:
        line = f"{one.id:{id_width}}  {one.epoch}  {moment(one.epoch)}  {one.title}"
        answer(cut(printable(line), width))
    if not found.removed:
        narrate("Nothing can be restored.")


restore = command_of(
    Way("restore", _show_restored, build=_name_one),
    others={"listing": Way("removed", _show_removed)},
    params={"id": click.Argument(["id"], required=False, shell_complete=offer("complete_removed"))},
    words={"epoch": "--at"},
    metavars={"epoch": "EPOCH"},
    also=[click.Option(["--list", "listing"], is_flag=True, help="Show what can be restored.")],
)
