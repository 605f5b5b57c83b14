"""A machine that does not answer for a while: what was known is shown with its age, and asked for again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Af
from tests.fleet.machines import Machines, Node
from tests.fleet.test_fleet import ok, shown, spawned
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


def machine(repo: Path) -> dict[str, Any]:
    book = json.loads((repo / ".agent-farm/fleet.json").read_text())
    return dict(book["machines"]["big"])


def test_status_shows_what_was_known_and_another_process_asks_on(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "--shell")
    before = shown(af, id)
    assert before["seen_at"] is None
    big.hang()
    (one,) = json.loads(ok(af, "status", "--json"))["builders"]
    assert one["status"] == before["status"]
    assert one["seen_at"] is not None
    assert "big has not answered; its builders are shown as of" in ok(af, "status")
    assert machine(repo)["is_late"]
    assert "1 waiting" in ok(af, "status", "--short") or "idle" in ok(af, "status", "--short")
    big.go_on()
    wait_until(lambda: not machine(repo)["is_late"], timeout=60, what="the answer of the one that asks on")
    assert machine(repo)["problem"] is None


def test_a_machine_that_hangs_on_is_said_to(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "--shell")
    shown(af, id)
    big.hang()
    ok(af, "status")
    wait_until(lambda: machine(repo)["problem"], timeout=90, what="the end of its patience")
    (one,) = json.loads(ok(af, "status", "--json"))["builders"]
    assert one["status"]["state"] == "unknown"
    assert "big has not answered within 15 s" in one["status"]["reason"]
    assert one["seen_at"] is not None
    big.go_on()
    assert shown(af, id)["seen_at"] is None


def test_one_that_hangs_does_not_hide_what_another_says(af: Af, big: Node, machines: Machines) -> None:
    other = machines("other")
    ok(af, "fleet", "add", "ssh://other")
    ids = [ok(af, "spawn", "--on", host, "--runtime", "demo", "--shell").strip() for host in ("big", "other")]
    ok(af, "status", "--fresh")
    big.hang()
    other.stop()
    found = {one["id"]: one for one in json.loads(ok(af, "status", "--json"))["builders"]}
    assert found[ids[0]]["status"]["state"] != "unknown"
    assert "other cannot be reached" in found[ids[1]]["status"]["reason"]
    big.go_on()
