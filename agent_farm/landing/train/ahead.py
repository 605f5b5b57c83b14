"""What can be checked beside the next check: what comes after it if it ends as is likelier.

A second check costs a run that may turn out to be of no use, and saves its time where it does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from agent_farm.landing.train.line import (
    Blame,
    Check,
    Land,
    Line,
    next_step,
    with_green,
    with_landed,
    with_red,
    without,
)


class Ahead(Struct, frozen=True):
    """A check, and all that is merged onto the target as it is now for it, in this order."""

    content: tuple[str, ...]
    check: Check


def checks_ahead(line: Line, most: int) -> Iterator[Ahead]:
    """The next check, and up to `most` in all that follow on the likelier outcomes.

    Nothing is run again while it runs: that would be no second look.
    """
    landed: tuple[str, ...] = ()
    begun: set[tuple[str, ...]] = set()
    while most > 0:
        step = next_step(line)
        if isinstance(step, Blame):
            line = without(line, step.id)
        elif isinstance(step, Land):
            landed += step.ids
            line = with_landed(line, step.ids)
        elif isinstance(step, Check):
            content = (*landed, *line.held_ids(), *step.group)
            if content not in begun:
                begun.add(content)
                yield Ahead(content, step)
                most -= 1
            likely = passing(line, step) >= 0.5
            line = with_green(line, step.group) if likely else with_red(line, step.group)
        else:
            return


def passing(line: Line, check: Check) -> float:
    """How likely the check passes; one that failed is likely to fail again."""
    if check.again:
        return 0.0
    good = _all_pass(line, check.group)
    group = set(check.group)
    suspects = next((red.members for red in line.reds if group & set(red.members)), ())
    if not suspects:
        return good
    if set(suspects) <= group:
        return 0.0
    whole = _all_pass(line, suspects)
    left = _all_pass(line, [id for id in suspects if id not in group])
    return good * (1 - left) / (1 - whole)


def _all_pass(line: Line, ids: Iterable[str]) -> float:
    wanted, result = set(ids), 1.0
    for one in line.waiting:
        if one.id in wanted:
            result *= 1 - min(max(one.risk, 0.005), 0.95)
    return result
