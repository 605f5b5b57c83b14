"""How many checks the landing queue runs: the shipped decisions over a check that is drawn by lot."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log2, sqrt
from statistics import fmean, stdev

from agent_farm.landing.train.ahead import checks_ahead
from agent_farm.landing.train.groups import expected_checks
from agent_farm.landing.train.line import (
    MOST_OVERTAKEN,
    Blame,
    Check,
    Land,
    LandingLine,
    Waiting,
    next_step,
    with_green,
    with_landed,
    with_red,
    without,
)
from benchmarks.stage import Rows

BRANCHES = 20
DRAWS = 4000


@dataclass(slots=True)
class Ride:
    """One queue to its end. `again` are the repeats that a blame takes, which `runs` does not hold."""

    runs: int = 0
    again: int = 0
    blamed: set[str] = field(default_factory=set)
    landed: list[str] = field(default_factory=list)
    overtaken: int = 0
    rounds: int = 0  # of up to `width` checks side by side
    started: int = 0  # with those that turned out to be of no use


def ride(risks: Sequence[float], bad: set[str], flaky: float, chance: random.Random, width: int = 1) -> Ride:
    """The target has passed before, as after every landing of the queue."""
    line = LandingLine(tuple(Waiting(str(age), age, risk) for age, risk in enumerate(risks)), proven=True)
    done = Ride()
    running: dict[tuple[frozenset[str], bool], bool] = {}
    while isinstance(step := next_step(line), Check | Land | Blame):
        if isinstance(step, Blame):
            done.blamed.add(step.id)
            line = without(line, step.id)
            continue
        if isinstance(step, Land):
            done.landed += step.ids
            line = with_landed(line, step.ids)
            done.overtaken = max([done.overtaken, *(one.overtaken for one in line.waiting)])
            continue
        asked = (frozenset({*done.landed, *line.held_ids(), *step.group}), step.again)
        if asked not in running:
            done.rounds += 1
            for ahead in checks_ahead(line, width):
                key = (frozenset({*done.landed, *ahead.content}), ahead.check.again)
                if key not in running:
                    done.started += 1
                    running[key] = not (key[0] & bad) and chance.random() >= flaky
        done.again += step.again
        done.runs += not step.again
        line = (with_green if running[asked] else with_red)(line, step.group)
    return done


def draws(risks: Sequence[float], chance: random.Random) -> list[set[str]]:
    """By number of the branch. Each is bad in exactly its share of all draws: less noise in their mean."""
    bad: list[set[str]] = [set() for _ in range(DRAWS)]
    for number, risk in enumerate(risks):
        for draw in chance.sample(range(DRAWS), round(risk * DRAWS)):
            bad[draw].add(str(number))
    return bad


def bisection(bad: Sequence[bool]) -> int:
    """As bors does it: the batch, and where it fails each half."""
    if not any(bad):
        return 1
    middle = len(bad) // 2
    return 1 if len(bad) == 1 else 1 + bisection(bad[:middle]) + bisection(bad[middle:])


def entropy(risks: Sequence[float]) -> float:
    return sum(-risk * log2(risk) - (1 - risk) * log2(1 - risk) for risk in risks)


def main() -> Rows:
    chance = random.Random(20)
    half = BRANCHES // 2
    yield from _table("28 % bad", 17.5, [0.28] * BRANCHES, chance)
    yield from _table("half 5 %, half 60 % bad", 13.0, [0.05] * half + [0.6] * half, chance)
    yield from _table("5 % bad", 6.5, [0.05] * BRANCHES, chance)
    for share in (0.28, 0.05):
        yield from _flaky(share, chance)


def _table(name: str, bar: float, kinds: Sequence[float], chance: random.Random) -> Rows:
    """`kinds` of branches, which come in another order at each draw."""
    rides, wide, plain = [], [], []
    for bad_kinds in draws(kinds, chance):
        order = chance.sample(range(len(kinds)), len(kinds))
        risks = [kinds[kind] for kind in order]
        bad = {str(place) for place, kind in enumerate(order) if str(kind) in bad_kinds}
        rides.append(ride(risks, bad, 0, chance))
        wide.append(ride(risks, bad, 0, chance, width=2))
        plain.append(bisection([str(place) in bad for place in range(len(order))]))
        assert rides[-1].blamed == bad
        assert len(rides[-1].landed) + len(bad) == len(kinds)
    runs = [one.runs for one in rides]
    mean = fmean(runs)
    overtaken = max(one.overtaken for one in rides)
    yield from (
        (f"{name}: checks", f"{mean:.2f} ± {stdev(runs) / sqrt(DRAWS):.2f} (bar: {bar:g})"),
        (f"{name}: expected by the plan", f"{expected_checks(sorted(kinds)):.2f}"),
        (f"{name}: no strategy can do with fewer than", f"{entropy(kinds):.2f}"),
        (f"{name}: serial / bisection of the whole", f"{len(kinds)} / {fmean(plain):.2f}"),
        (
            f"{name}: repeats before a blame, one per bad branch",
            f"{fmean(one.again for one in rides):.2f}",
        ),
        (
            f"{name}: two at a time: checks started / rounds, repeats included",
            f"{fmean(one.started for one in wide):.2f} / {fmean(one.rounds for one in wide):.2f}",
        ),
        (f"{name}: most younger branches that landed before one", f"{overtaken} (bar: {MOST_OVERTAKEN})"),
    )
    if mean > bar or overtaken > MOST_OVERTAKEN:
        sys.exit(f"{name}: {mean:.2f} checks, {overtaken} overtaken")


def _flaky(share: float, chance: random.Random) -> Rows:
    risks = [share] * BRANCHES
    rides = [(bad, ride(risks, bad, 0.05, chance)) for bad in draws(risks, chance)]
    good = sum(BRANCHES - len(bad) for bad, _ in rides)
    wrongly = sum(len(one.blamed - bad) for bad, one in rides)
    yield from (
        (
            f"{share:.0%} bad, 5 % of checks flaky: good branches blamed",
            f"{wrongly / good:.2%} (bar: 1 %)",
        ),
        (
            f"{share:.0%} bad, 5 % of checks flaky: checks / repeats",
            f"{fmean(one.runs for _, one in rides):.2f} / {fmean(one.again for _, one in rides):.2f}",
        ),
    )
    if wrongly > good / 100:
        sys.exit(f"{wrongly} of {good} good branches were blamed")
