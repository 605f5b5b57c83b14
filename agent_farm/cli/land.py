"""`af diff`, `af merge`, `af land`, `af conflicts`."""

from __future__ import annotations

import click

from agent_farm.cli.cells import counted
from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.output import (
    answer,
    has_colour,
    narrate,
    narrate_hint,
    page,
    printable,
    terminal_width,
)
from agent_farm.cli.table import table
from agent_farm.landing.single_merge import Merged
from agent_farm.launch import as_command
from agent_farm.operations.check import AllChecked, Checked
from agent_farm.operations.conflicts import ForeseenConflicts
from agent_farm.operations.diff import Difference
from agent_farm.operations.land_steps import Part
from agent_farm.operations.landing_queue import CameBack, HasLanded, InQueue, LandingQueue
from agent_farm.operations.merge import AllMerged, Chosen, Kept
from agent_farm.operations.prune import Removal
from agent_farm.operations.sync import Synced

_REMOVE_LANDED = "af prune --landed"


def _show_diff(found: Difference) -> None:
    if found.branch != found.own_branch:
        where = f"on {printable(found.branch)}" if found.branch else f"detached at {found.commit[:10]}"
        narrate(f"{found.id} is {where}, not on {found.own_branch}.")
    if found.diff:
        page(found.diff.rstrip("\n"))
    else:
        narrate(f"{found.id} has changed nothing.")


diff = command_of(
    Way("diff", _show_diff, build=lambda typed: {"colors": has_colour() and not typed["as_json"]}),
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
    ready = [one.id for one in found.builders if one.state == "proven"]
    if ready:
        narrate_hint(as_command("af", "merge", *ready))


check = command_of(
    Way("check", _show_checked, _conclude_check),
    epilog="""\b
proven   committed, clean, no flags, all checks passed on the merged result
flagged  the same with flags, on the lines below: look at them in the diff
red      a check failed; conflicts, uncommitted, empty: what stands against it
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
        narrate_hint(whole[0] if len(whole) == 1 else _REMOVE_LANDED)


merge = command_of(
    Way("merge", _show_merge, _conclude_merge),
    short={"message": "-m"},
)


def show_landing(part: Part) -> None:
    if isinstance(part, HasLanded):
        answer(f"{part.id} landed, checked as tree {part.tree[:10]}")
    elif isinstance(part, CameBack):
        _show_returned(part)


def _show_returned(one: CameBack, how: str = "did not") -> None:
    answer(printable(f"{one.id} {how} land: {one.what}"))
    for line in one.evidence:
        narrate(f"  {printable(line)}")
    if one.log:
        narrate(f"  {printable(one.log)}")
    if one.told:
        narrate(f"  message to its builder: {printable(one.told)}")
    if one.hint:
        narrate_hint(one.hint)


def _conclude_landing(found: LandingQueue) -> None:
    if found.state == "none":  # it was a dry run
        _show_queue(found)
        return
    if found.state == "running":  # by another process
        narrate(f"In the queue of {found.into}: {', '.join(one.id for one in found.waiting)}")
        narrate_hint("af land --status")
        return
    for note in found.notes:
        narrate(printable(note))
    for group in found.flaky:
        narrate(f"Flaky: the check of {', '.join(group)} was red, and green when it was run again")
    again = f" and {counted(found.repeats, 'repeat')}" if found.repeats else ""
    narrate(
        f"{len(found.landed)} landed, {len(found.returned)} did not: {counted(found.checks, 'check')}{again}."
    )
    if found.landed:
        narrate_hint(_REMOVE_LANDED)


def _show_status(found: LandingQueue) -> None:
    if found.state == "none":
        narrate("There is no landing.")
    else:
        _show_queue(found)


def _show_queue(found: LandingQueue) -> None:
    """The whole of it, for --status and --dry-run."""
    for group in found.groups:
        answer(f"check {', '.join(group)}")
    rows = [
        *((one.id, f"{one.commit[:10]}  {_prospect(one)}") for one in found.waiting),
        *((landed.id, f"landed as {landed.commit[:10]}") for landed in found.landed),
        *((id, "has nothing to land") for id in found.present),
    ]
    for line in table(rows, terminal_width()):
        answer(line)
    for back in found.returned:
        _show_returned(back, "did not" if found.state != "none" else "would not")
    if found.state == "stopped":
        for line in found.problem:
            narrate(printable(line))
        narrate_hint("af land --continue")


def _prospect(one: InQueue) -> str:
    return "passed, has not landed yet" if one.held else f"{one.risk:.0%} likely to fail"


def _show_aborted(found: LandingQueue) -> None:
    rest = ", ".join(one.id for one in found.waiting)
    narrate(f"The queue is empty. Not landed: {rest}" if rest else "The queue is empty.")


_LANDING = Way("land", show_landing, _conclude_landing)
land = command_of(
    _LANDING,
    others={
        "status": Way("land_status", _show_status),
        "proceed": Way("land_continue", show_landing, _conclude_landing),
        "abort": Way("land_abort", _show_aborted),
    },
    also=[
        click.Option(["--status"], is_flag=True, help="Show the queue."),
        click.Option(["--continue", "proceed"], is_flag=True, help="Continue an interrupted landing."),
        click.Option(["--abort"], is_flag=True, help="Empty the queue; what has landed stays."),
    ],
    epilog="""\b
Exit code 0 when all have landed; 1 when one did not or the queue stopped.
""",
)


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


def _show_synced(found: Synced) -> None:
    where = f"{found.base} at {found.base_commit[:10]}"
    moved = found.before != found.after
    answer(printable(f"{found.id} moved onto {where}" if moved else f"{found.id} stands on {where} already"))


sync = command_of(Way("sync", _show_synced))
