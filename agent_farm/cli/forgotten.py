"""What `af stop` and `af prune` say about a builder that waited in the queue."""

from __future__ import annotations

from agent_farm.cli.output import answer, narrate_hint
from agent_farm.launch import as_command
from agent_farm.operations.stop import Forgotten


def show_forgotten(part: Forgotten) -> None:
    answer(f"{part.id} is out of the queue")
    if part.prompt:
        narrate_hint(as_command("af", "spawn", "--task-file", part.prompt))
