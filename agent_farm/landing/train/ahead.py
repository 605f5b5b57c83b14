"""Which checks can run beside the next one: those that follow if each ends the likelier way.

A second check costs a run that may turn out useless, and saves its whole time if it does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from agent_farm.landing.train.line import (
    Blame,
    Check,
    Land,
    LandingLine,
    next_step,
    with_green,
    with_landed,
    with_red,
    without,
)


class Ahead(Struct, frozen=True):
    """A check, and everything merged onto the present target for it, in this order."""

    content: tuple[str, ...]
    check: Check


def checks_ahead(line: LandingLine, most: int) -> Iterator[Ahead]:
    """The next check and those that follow if each ends the likelier way: `most` in all.

    A check is never repeated while it is running: that would not be an independent second look.
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


def passing(line: LandingLine, check: Check) -> float:
    """How likely the check passes; one that has failed is likely to fail again."""
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


def _all_pass(line: LandingLine, ids: Iterable[str]) -> float:
    wanted, result = set(ids), 1.0
    for one in line.waiting:
        if one.id in wanted:
            result *= 1 - min(max(one.risk, 0.005), 0.95)
    return result
