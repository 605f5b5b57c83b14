"""What a verb costs is compared with what it cost when that was recorded: `make bench` says how."""

from __future__ import annotations

import json

import pytest

from benchmarks.many import together
from benchmarks.ratios import RECORDED, Ratio, measure
from benchmarks.stage import stage

pytestmark = pytest.mark.slow

# Runs on a busy machine differ by a tenth, other processors and Pythons by a third.
MARGIN, SMALL, MORE_MEMORY = 1.6, 0.5, 1.4
# Processes and megabytes do not depend on the load; what is shared by ten weighs more than by a hundred.
FEWER = 1.0


def worse(found: dict[str, Ratio]) -> dict[str, tuple[float, float]]:
    """Verbs that take clearly more time or memory than recorded: what was recorded, and what it is now."""
    recorded = {name: Ratio(**one) for name, one in json.loads(RECORDED.read_text())["ratios"].items()}
    both = {name: (recorded[name].median, one.low) for name, one in found.items() if name in recorded}
    assert len(both) > 10, both
    memory = {f"{name}, MB": (recorded[name].peak, found[name].peak) for name in both if recorded[name].peak}
    slower = {name: one for name, one in both.items() if one[1] > MARGIN * one[0] + SMALL}
    return slower | {name: one for name, one in memory.items() if one[1] > MORE_MEMORY * one[0]}


def test_no_verb_costs_clearly_more_than_recorded() -> None:
    with stage() as on:
        found = measure(on, 10)
    assert worse(found) == {}


def test_a_verb_that_costs_twice_as_much_is_found() -> None:
    recorded = {name: Ratio(**one) for name, one in json.loads(RECORDED.read_text())["ratios"].items()}
    twice = {
        name: Ratio(2 * one.median, 2 * one.low, 2 * one.high, 0, 2 * one.peak)
        for name, one in recorded.items()
    }
    assert {"af status, 10 builders", "af status, 10 builders, MB"} <= worse(twice).keys()
    assert worse(recorded) == {}


def test_ten_together_take_no_more_processes_and_memory_each_than_recorded() -> None:
    recorded = json.loads(RECORDED.read_text())["many"]
    with stage() as on:
        found = together(on, 10)
    both = {name: (recorded[name], now) for name, now in found.items() if name in recorded}
    assert len(both) >= 9, both
    assert {name: one for name, one in both.items() if one[1] > 1.3 * one[0] + FEWER} == {}
