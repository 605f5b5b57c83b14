"""What a verb costs is compared with what it cost when that was recorded: `make bench` says how.

What is compared is what noise moves least: the least processor time of several rounds over the yardstick's
least, memory, and numbers of processes. Elapsed time has a wide margin: it finds long waits alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pytest

from benchmarks.many import at_once, at_rest
from benchmarks.ratios import of_many, verbs
from benchmarks.record import machine, recorded
from benchmarks.stage import Stage, stage

pytestmark = pytest.mark.slow

# Runs on a busy machine differ by a tenth, what can be measured only once by a quarter; on other processors,
# kernels and Pythons the same code has other ratios.
HERE = {"time": 1.35, "once": 1.6, "clock": 3.0, "memory": 1.2, "processes": 1.0}
ELSEWHERE = {"time": 1.8, "once": 2.0, "clock": 4.0, "memory": 1.4, "processes": 1.0}
POLLS = {"af send": "tmux processes"}  # how often it asks depends on the load
PARTS: dict[str, Callable[[Stage], Mapping[str, object]]] = {
    "verbs": verbs,
    "ten": lambda on: of_many(on, 10),
    "a hundred": lambda on: of_many(on, 100),
    "forty at once": lambda on: at_once(on, 1),
    "ten at rest": lambda on: at_rest(on, 10),
}


@pytest.mark.parametrize("part", PARTS)
def test_nothing_costs_clearly_more_than_recorded(part: str) -> None:
    with stage() as on:
        found = PARTS[part](on)
    assert worse(found) == {}


def test_every_figure_of_a_verb_that_grows_is_found() -> None:
    known = recorded()["ratios"]
    grown = {
        name: one | {"least": 2 * one["least"], "look": {**one["look"], "git": one["look"]["git"] + 11}}
        for name, one in known.items()
    }
    assert worse(known) == {}
    assert len(worse(grown)) == 2 * len(known)


def worse(found: Mapping[str, object]) -> dict[str, tuple[float, float]]:
    """What is clearly more than recorded: what was recorded, and what it is now."""
    known = figures(recorded()["ratios"] | recorded()["many"])
    margins = HERE if machine() == recorded()["machine"] else ELSEWHERE
    both = {name: (known[name], value) for name, value in figures(found).items() if name in known}
    assert both, found
    return {
        f"{name}, {kind}": (before, now)
        for (name, kind), (before, now) in both.items()
        if now > margins[kind.split()[-1]] * before + _slack(name, kind, before)
    }


def _slack(name: str, kind: str, before: float) -> float:
    """What a margin cannot be a multiple of."""
    if kind == "clock":
        return 4 * min(1, before)  # C: where others have the cores, a short command waits for one
    if POLLS.get(name) == kind:
        return 10
    return {"tmux processes": 0.2, "processes": 0.15}.get(kind, 0.005)


def figures(found: Mapping[str, object]) -> dict[tuple[str, str], float]:
    return {(name, kind): value for name, one in found.items() for kind, value in _of_one(name, one)}


def _of_one(name: str, one: Any) -> Iterator[tuple[str, float]]:
    one = json.loads(json.dumps(one, default=asdict))
    if not isinstance(one, dict):
        yield "memory" if "MB" in name else "processes", one
    elif "look" in one:
        yield "once" if name.endswith(", each") else "time", one["least"]
        yield from (("clock", one["least_clock"]), ("memory", one["look"]["peak"]))
        yield from ((f"{tool} processes", one["look"][tool]) for tool in ("git", "tmux"))
    elif "processor time" in name:
        yield "time", one["median"]
