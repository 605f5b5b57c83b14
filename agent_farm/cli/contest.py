"""`af compare`, `af keep`."""

from __future__ import annotations

from agent_farm.cli.cells import counted
from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.land import show_landing
from agent_farm.cli.output import answer, narrate, narrate_hint, printable
from agent_farm.cli.prune import show_prune
from agent_farm.cli.status_table import age, usage_words
from agent_farm.launch import as_command
from agent_farm.operations.compare import Compared, Comparison
from agent_farm.operations.keep import KeptOne, Part
from agent_farm.operations.landing_queue import CameBack, HasLanded, LandingQueue
from agent_farm.operations.prune import Removal, WouldRemove


def _show_comparison(found: Comparison) -> None:
    for one in found.builders:
        answer(printable(_line(one)))
        for reason in one.reasons:
            answer(printable(f"     {reason}"))
    for row in found.tests:
        if not row.passed:
            narrate(printable(f"{row.on} with the tests of {row.tests_of}: {row.told}: {row.log}"))
    best = found.builders[0]
    if best.chance is None:
        narrate("None of them is proven.")
        return
    if not found.decided:
        narrate("No test tells the first two apart; flags, then size, then cost decide.")
    narrate_hint(as_command("af", "keep", "--land", best.id))


def _line(one: Compared) -> str:
    """`1  task-ab12  right: 93 %  +40 -3 in 2 files  12k/3k $0.13  4m  claude-code (kept 3 of 4)`."""
    chance = one.proof.state if one.chance is None else f"right: {one.chance:.0%}"
    size = f"+{one.added} -{one.deleted} in {counted(one.files, 'file')}"
    tests = f"{counted(len(one.tests), 'test file')}" if one.tests else ""
    runtime = " ".join(filter(None, (one.runtime, one.model)))
    if decided := one.won + one.lost:
        runtime += f" (kept {one.won} of {decided})"
    took = age(one.seconds) if one.seconds is not None else ""
    cells = (str(one.rank), one.id, chance, size, tests, usage_words(one.usage), took, runtime)
    return "  ".join(filter(None, cells))


compare = command_of(
    Way("compare", _show_comparison),
    epilog="""\b
Each one's new tests run on the others' code. What comes first passes the
tests of others, and finds mistakes by its own; below each stands what it is
ranked by.
Exit code 0 when at least one is proven.
""",
)


def _show_kept(part: Part) -> None:
    if isinstance(part, Removal | WouldRemove):
        show_prune(part)
    elif isinstance(part, LandingQueue | HasLanded | CameBack):
        show_landing(part)


def _conclude_kept(found: KeptOne) -> None:
    if found.landing and found.landing.returned:
        narrate(f"{found.id} did not land, so the others stay.")
    elif not (found.removed or found.would_remove or found.refused):
        narrate(f"{found.id} stays. No other builder of its comparison is left.")
    elif not found.would_remove:
        narrate(f"{found.id} stays.")
    if found.removed:
        narrate_hint(f"af restore {found.removed[0].id if len(found.removed) == 1 else 'ID'}")


keep = command_of(Way("keep", _show_kept, _conclude_kept))
