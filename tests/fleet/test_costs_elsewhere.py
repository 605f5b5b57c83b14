"""`af costs` of builders on another machine: what home knows of them, in the words of those here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Af
from tests.fleet.machines import Node
from tests.fleet.test_fleet import ok, spawned
from tests.operations.test_costs import costs
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

NUMBERS = ("input_tokens", "output_tokens", "cached_tokens", "cost")


def test_they_count_until_they_are_removed_and_after_that(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "Fix the login [[write:one.txt]]")
    ok(af, "wait", id, "--timeout", "120")

    def told() -> list[float]:
        (file,) = big.farms[0].glob(f".agent-farm/**/{id}*/**/usage.json")
        usage = json.loads(file.read_text())
        return [usage.get(name) or 0 for name in NUMBERS]

    def known() -> dict[str, Any] | None:
        """Once the machine has answered within the second that it has."""
        found = costs(af)
        (one,) = found["builders"] or [None]
        if one is None or [one[name] for name in NUMBERS] != pytest.approx(told()):
            return None
        for name in NUMBERS:
            assert found["total"][name] == pytest.approx(one[name])
            assert sum(day[name] for day in found["days"]) == pytest.approx(one[name])
        return dict(one)

    one = wait_until(known, what="its use")
    assert (one["id"], one["runtime"], len(one["runs"]), one["removed"]) == (id, "demo", 1, False)
    ok(af, "fleet", "checkpoint")
    assert known(), "the turn of the checkpoint counts once"
    ok(af, "send", id, "[[say:once more]]")
    ok(af, "wait", id, "--timeout", "120")
    wait_until(known, what="the second turn")
    ok(af, "fleet", "checkpoint")
    assert wait_until(known, what="both turns from the checkpoint")["runs"] == [
        {**dict(zip(NUMBERS, told(), strict=True)), "run": one["runs"][0]["run"]}
    ]
    ok(af, "merge", id)
    wait_until(lambda: costs(af)["landed"] == 1, what="the landing, as its machine sees it")
    assert f"{id} " in ok(af, "costs")
    ok(af, "prune", "--stop", id)
    gone = known()
    assert gone
    assert (gone["landed"], gone["removed"]) == (True, True)
    ok(af, "restore", id)
    back = wait_until(known, what="its use")
    assert not back["removed"]
    big.stop()
    assert known(), "as it was known last"
