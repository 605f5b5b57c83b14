"""`af land`."""

from __future__ import annotations

import click

from agent_farm.cli.cells import counted
from agent_farm.cli.columns import table
from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.output import answer, narrate, narrate_hint, printable, terminal_width
from agent_farm.operations.land_steps import Part
from agent_farm.operations.landing_queue import CameBack, HasLanded, InQueue, LandingQueue

_REMOVE_LANDED = "af prune --landed"


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
    if found.state == "none":  # a dry run
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
    """The whole queue, for --status and --dry-run."""
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
