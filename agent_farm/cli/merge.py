"""`af merge`."""

from __future__ import annotations

from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.output import answer, narrate, narrate_hint, printable
from agent_farm.landing.single_merge import Merged
from agent_farm.operations.merge import AllMerged, Chosen, NotRemoved
from agent_farm.operations.prune import Removal


def _show_merge(part: Chosen | Merged | Removal | NotRemoved) -> None:
    if isinstance(part, Merged):
        _show_merged(part)
    elif isinstance(part, Removal):
        narrate(f"{part.id} removed")
    elif isinstance(part, NotRemoved):
        outcome = "was kept" if part.certain else "may have been removed"
        narrate(printable(f"{part.id} {outcome}: {part.reason.rstrip('.')}."))
        for line in part.evidence:
            narrate(f"  {printable(line)}")
        if part.hint:
            narrate_hint(printable(part.hint))


def _show_merged(part: Merged) -> None:
    for line in part.notes:
        narrate(printable(line))
    if part.before == part.after:
        answer(f"{part.id} has nothing to land")
    else:
        other = f" (from {part.branch or 'a detached HEAD'})" if part.switched else ""
        answer(printable(f"{part.id} landed on {part.into}{other}, now at {part.after[:10]}"))
    for path in part.left_behind:
        narrate(f"  not committed, so not landed: {printable(path)}")
    if part.hint and part.left_behind:
        narrate_hint(printable(part.hint))


def _conclude_merge(found: AllMerged) -> None:
    if found.failed and found.merged:
        narrate(f"Merged before that, and still merged: {', '.join(one.id for one in found.merged)}")
    if found.not_tried:
        narrate(f"Not tried: {', '.join(found.not_tried)}")
    if found.removed:
        narrate_hint(f"af restore {found.removed[0].id if len(found.removed) == 1 else 'ID'}")
    whole = [one.hint for one in found.merged if one.hint and not one.left_behind]
    if whole:
        narrate_hint(whole[0] if len(whole) == 1 else "af prune --landed")


merge = command_of(
    Way("merge", _show_merge, _conclude_merge),
    short={"message": "-m"},
)
