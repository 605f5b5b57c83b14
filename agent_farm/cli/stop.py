"""`af stop`."""

from __future__ import annotations

from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.forgotten import show_forgotten
from agent_farm.cli.output import answer, narrate
from agent_farm.operations.stop import Forgotten, Stopped


def _conclude(found: Stopped) -> None:
    if not (found.stopped or found.forgotten or found.failed):
        narrate("No builder is running.")


def _show_stopped(part: str | Forgotten) -> None:
    if isinstance(part, Forgotten):
        show_forgotten(part)
    else:
        answer(f"{part} stopped")


stop = command_of(Way("stop", _show_stopped, _conclude))
