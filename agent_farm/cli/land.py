"""`af diff`, `af merge`, `af conflicts`."""

from __future__ import annotations

from typing import Any

from agent_farm.cli.cells import counted
from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.output import answer, has_colour, narrate, narrate_hint, page, printable
from agent_farm.launch import as_command
from agent_farm.operations.check import AllChecked, Checked
from agent_farm.operations.conflicts import ForeseenConflicts
from agent_farm.operations.diff import Difference
from agent_farm.operations.merge import AllMerged, Chosen, Kept, Merged
from agent_farm.operations.prune import Removal


def _ask_diff(typed: dict[str, Any]) -> dict[str, Any]:
    as_json = typed.pop("as_json")
    return {**typed, "colors": has_colour() and not as_json}


def _show_diff(found: Difference) -> None:
    if found.branch != found.own_branch:
        where = f"on {printable(found.branch)}" if found.branch else f"detached at {found.commit[:10]}"
        narrate(f"{found.id} is {where}, not on {found.own_branch}.")
    if found.diff:
        page(found.diff.rstrip("\n"))
    else:
        narrate(f"{found.id} has changed nothing.")


diff = command_of(
    Way("diff", _show_diff, build=_ask_diff),
    params={"colors": None, "most": None},
)


def _show_checked(part: Checked) -> None:
    proof = part.proof
    seconds = sum(check.seconds for check in proof.checks)
    took = f" in {seconds:.1f} s" if proof.checks else ""
    answer(printable(f"{part.id}  {part.state}{took}" + (f": {part.reason}" if part.reason else "")))
    for flag in proof.flags:
        answer(printable(f"  {flag.kind}  {flag.told}"))
    for output in part.output:
        narrate(printable("".join(f"  {line}\n" for line in output.text.splitlines()).rstrip("\n")))
    for check in proof.checks:
        if not check.passed:
            narrate(f"  log: {check.log}")


def _conclude_check(found: AllChecked) -> None:
    ready = [one.id for one in found.builders if one.state == "proven" and not one.proof.flags]
    if ready:
        narrate_hint(as_command("af", "merge", *ready))


check = command_of(
    Way("check", _show_checked, _conclude_check),
    short={"yes": "-y"},
    epilog="""\b
proven       committed, clean, and every check passed on it merged into its target
red          a check failed; conflicts, uncommitted, empty: what stands against it
Lines below it are flags: what to look at in the diff, whatever the checks say.
Exit code 0 when all are proven.
""",
)


def _show_merge(part: Chosen | Merged | Removal | Kept) -> None:
    if isinstance(part, Merged):
        _show_merged(part)
    elif isinstance(part, Removal):
        narrate(f"{part.id} removed")
    elif isinstance(part, Kept):
        narrate(printable(f"{part.id} was kept: {part.reason.rstrip('.')}."))
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
    if part.hint:
        narrate_hint(printable(part.hint))


def _conclude_merge(found: AllMerged) -> None:
    if found.failed and found.merged:
        narrate(f"Merged before that, and still merged: {', '.join(one.id for one in found.merged)}")
    if found.not_tried:
        narrate(f"Not tried: {', '.join(found.not_tried)}")
    if found.removed:
        narrate_hint(f"af restore {found.removed[0].id if len(found.removed) == 1 else 'ID'}")


merge = command_of(
    Way("merge", _show_merge, _conclude_merge),
    short={"message": "-m", "yes": "-y"},
    metavars={"message": "TEXT"},
)


def _show_foreseen(found: ForeseenConflicts) -> None:
    for one in found.conflicts:
        answer(printable(f"{one.one}  {one.other}  {', '.join(one.files)}"))
    for pair in found.unknown:
        answer(printable(f"{pair.one}  {pair.other}  ? not compared: {pair.reason}"))
    if not found.conflicts and not found.unknown:
        builders = counted(len(found.compared), "builder")
        bases = "its base" if len(found.compared) == 1 else "their bases"
        narrate(f"No conflicts among {builders} and {bases}.")
    elif not found.conflicts:
        narrate("No conflicts among those that could be compared.")


conflicts = command_of(
    Way("conflicts", _show_foreseen),
    epilog="""\b
Exit code 0 when there are none; 1 when there are, or when a pair cannot be compared because a
branch is gone.
""",
)
