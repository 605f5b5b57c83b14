"""`af queue`, in a file of its own because `af spawn` starts without it."""

from __future__ import annotations

from agent_farm.cli.cells import cut
from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.output import answer, narrate, printable, terminal_width
from agent_farm.operations.queue import Queue, Waiting
from agent_farm.operations.shown import BuilderShown


def _show_queue(part: BuilderShown | Waiting) -> None:
    if isinstance(part, Waiting):
        answer(cut(printable(f"{part.id} waits ({part.reason}): {part.title}"), terminal_width()))
    else:
        answer(f"{part.id} started")


def _conclude_queue(found: Queue) -> None:
    if not (found.started or found.waiting):
        narrate("No builder waits.")


queue = command_of(Way("queue", _show_queue, _conclude_queue))
