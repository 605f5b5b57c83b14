"""`af conflicts`."""

from __future__ import annotations

from agent_farm.cli.cells import counted
from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.output import answer, narrate, narrate_hint, printable
from agent_farm.launch import as_command
from agent_farm.operations.conflicts import ForeseenConflicts


def _show_foreseen(found: ForeseenConflicts) -> None:
    for one in found.conflicts:
        answer(printable(f"{one.one}  {one.other}  {', '.join(one.files)}"))
        for hunk in one.hunks:
            lines = (f"{hunk.file}:{hunk.line}", *hunk.text.split("\n"))
            answer(printable("\n".join(f"  {line}".rstrip() for line in lines)))
    for pair in found.unknown:
        answer(printable(f"{pair.one}  {pair.other}  ? not compared: {pair.reason}"))
    if not found.conflicts and not found.unknown:
        builders = counted(len(found.compared), "builder")
        bases = "its base" if len(found.compared) == 1 else "their bases"
        narrate(f"No conflicts among {builders} and {bases}.")
    elif not found.conflicts:
        narrate("No conflicts among those that could be compared.")
    if found.rework and len(found.order) > 1:
        ready = [id for id in found.order if id not in found.rework]
        narrate(f"Fewest conflicts in this order: {' '.join(found.order)}")
        if ready:
            narrate_hint(as_command("af", "merge", *ready))


conflicts = command_of(
    Way("conflicts", _show_foreseen),
    epilog="""Exit code 0 when there are none; 1 when there are, or when a pair cannot be compared because a
branch is gone.
""",
)
