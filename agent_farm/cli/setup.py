"""`af setup`."""

from __future__ import annotations

from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.output import answer, narrate, printable
from agent_farm.operations.setup import SetUp


def _show_set_up(found: SetUp) -> None:
    for note in found.notes:
        narrate(printable(note))
    answer(f"{found.id} is set up")


setup = command_of(Way("setup", _show_set_up))
