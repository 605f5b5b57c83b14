"""Headless sessions on machines of a cluster, one of which dies in the middle: each is begun once, or not."""

from __future__ import annotations

import pytest

from tests.conftest import Af, end_processes
from tests.engine.engines import Cluster, Node
from tests.fleet.test_fleet import ok
from tests.fleet.test_sessions_elsewhere import log
from tests.sessions.records import Records
from tests.waiting import wait_until

__all__ = ["log"]  # a fixture

pytestmark = pytest.mark.slow
LONG = 240.0
COUNT = 12


def lines_of(nodes: list[Node], name: str) -> int:
    files = [
        file for node in nodes for farm in node.farms for file in farm.glob(f".agent-farm/butler/{name}")
    ]
    return sum(len(file.read_text().splitlines()) for file in files)


def test_a_machine_that_dies_in_the_middle(af: Af, log: Records, cluster: Cluster) -> None:
    cluster.up(af)
    nodes = [cluster.join(name, slots=3) for name in ("n1", "n2")]
    ok(af, "config", "set", "fleet.lost_seconds", "10")
    ok(af, "run", "--on", "n1", "Say hello")
    ids = {}
    for number in range(COUNT):
        prompt = f"[[sleep:3]] Write one line about it into n{number}.md"
        ids[ok(af, "trigger", "--on", "fleet", "--no-wait", prompt).strip()] = f"n{number}.md"
    wait_until(
        lambda: {"n1", "n2"} <= {one["host"] for one in log.find(states=("running",))},
        timeout=LONG,
        what="sessions on both",
    )
    wait_until(lambda: "3 of 3 slots taken" in ok(af, "fleet", "status"), timeout=LONG, what="a full machine")
    cluster.kill("n1")
    end_processes(nodes[0].home)
    had = {one["id"] for one in log.find(states=("running", "completed")) if one["host"] == "n1"}
    wait_until(lambda: not log.find(states=("running", "queued")), timeout=LONG, what="the end of all")
    for id, name in ids.items():
        one = log.get(id)
        times = lines_of(nodes, name)
        assert times == 1 if one["state"] == "completed" else times <= 1, one
        assert one["state"] == "completed" or id in had, one["error"]
    ends = {one["host"]: one["state"] for one in log.find(limit=0) if one["id"] not in had}
    assert ends == {"n2": "completed"} | ({"n1": "completed"} if "n1" in ends else {})
    assert [one for one in log.find(states=("interrupted",)) if "n1 is lost" in one["error"]]
    wait_until(lambda: "0 of 3 slots taken" in ok(af, "fleet", "status"), timeout=LONG, what="free slots")

    id = ok(af, "trigger", "--on", "n2", "--no-wait", "[[sleep:600]]").strip()
    wait_until(lambda: log.get(id)["state"] == "running", timeout=LONG, what="one to be ended")
    ok(af, "sessions", "stop", id)
    assert log.get(id)["state"] == "cancelled"
