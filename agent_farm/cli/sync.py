"""`af sync`."""

from __future__ import annotations

from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.output import answer, printable
from agent_farm.operations.sync import Synced


def _show_synced(found: Synced) -> None:
    where = f"{found.base} at {found.base_commit[:10]}"
    moved = found.before != found.after
    answer(printable(f"{found.id} moved onto {where}" if moved else f"{found.id} stands on {where} already"))


sync = command_of(Way("sync", _show_synced))
