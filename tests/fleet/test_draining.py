"""A machine that is drained: nothing new comes there, and what it has goes on elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Af
from tests.fleet.machines import Machines, Node
from tests.fleet.test_checkpoints import worktree
from tests.fleet.test_fleet import ok, shown, spawned
from tests.fleet.test_lost_machines import leave_work, other, runtimes
from tests.gitrepo import git

pytestmark = pytest.mark.slow
__all__ = ["other"]  # the fixture


def drain(af: Af, *words: str) -> dict[str, Any]:
    done = af("fleet", "drain", "big", *words, "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    return dict(json.loads(done.stdout))


def test_nothing_new_is_placed_there_until_it_is_undone(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "--shell")
    assert drain(af)["stay"] == [{"id": id, "state": shown(af, id)["status"]["state"], "at_home": True}]
    assert "draining" in ok(af, "fleet", "status")
    assert git(repo, "rev-parse", "--verify", f"refs/agent-farm/fleet/{id}@checkpoint")
    assert len(runtimes(id)) == 1, "it goes on"
    for on in ("big", "fleet"):
        done = af("spawn", "--on", on, "--runtime", "demo", "Fix")
        assert done.returncode == 1
        assert "draining" in done.stderr
    ok(af, "prune", "--stop", id)
    refused = af("restore", id)
    assert "big is draining" in refused.stderr
    assert "af fleet drain big --undo" in refused.stderr
    assert ok(af, "fleet", "drain", "big", "--undo") == "big takes builders again\n"
    assert "draining" not in ok(af, "fleet", "status")
    ok(af, "restore", id)
    spawned(af, "--shell")


def test_its_builders_go_on_elsewhere_and_it_can_be_removed(
    af: Af, big: Node, other: Node, repo: Path
) -> None:
    """Idle, stopped, and in the middle of a turn."""
    idle = leave_work(af, big)
    (worktree(big, idle) / "later.txt").write_text("after the last checkpoint\n")
    stopped, busy = spawned(af, "Fix the logout"), spawned(af, "[[sleep:600]]")
    ok(af, "wait", stopped, "--timeout", "120")
    ok(af, "stop", stopped)
    ok(af, "wait", busy, "--for", "working", "--timeout", "120")
    found = drain(af, "--move", "--yes")
    assert {one["id"]: one["on"] for one in found["moved"]} == {idle: "other", stopped: "other"}
    assert [(one["id"], one["state"]) for one in found["stay"]] == [(busy, "working")]
    assert len(runtimes(busy)) == 1
    assert af("fleet", "remove", "big").returncode == 4
    there = worktree(other, idle)
    assert other.run("git", "-C", str(there), "status", "--porcelain").splitlines() == [
        "A  staged.txt",
        "?? later.txt",
        "?? left.txt",
    ]
    assert len(runtimes(idle)) == 1, "the one on the drained machine has ended"
    assert (shown(af, idle)["host"], shown(af, idle)["status"]["state"]) == ("other", "idle")
    assert shown(af, stopped)["status"]["state"] == "stopped"
    assert runtimes(stopped) == []
    assert ok(af, "send", idle, "And now the tests") == f"{idle} submitted\n"
    ok(af, "wait", idle, "--timeout", "120")
    (talk,) = (other.farms[0] / ".agent-farm/runs" / idle / "demo").glob("*.json")
    assert json.loads(talk.read_text())["messages"] == 2, "the conversation goes on"

    assert [one["interrupted"] for one in drain(af, "--move", "--interrupt", "--yes")["moved"]] == [True]
    assert shown(af, busy)["status"]["state"] == "interrupted"
    assert "out of the fleet" in ok(af, "fleet", "remove", "big")
    assert {one["host"] for one in json.loads(ok(af, "status", "--json"))["builders"]} == {"other"}
    ok(af, "merge", idle)


def test_to_this_machine(af: Af, big: Node, repo: Path) -> None:
    id = leave_work(af, big)
    none = af("fleet", "drain", "big", "--move")
    assert none.returncode == 2, none.stdout
    assert "No other machine takes builders" in none.stderr
    assert "hint: af fleet drain big --on local" in none.stderr
    assert len(runtimes(id)) == 1
    assert [one["on"] for one in drain(af, "--on", "local", "--yes")["moved"]] == ["local"]
    assert (repo / ".builders" / id / "left.txt").read_text() == "not committed\n"
    assert shown(af, id)["status"]["state"] == "idle"
    assert "out of the fleet" in ok(af, "fleet", "remove", "big")


def block(node: Node, id: str) -> Path:
    """What keeps the builder from being placed there."""
    (node.home / ".local/state/agent-farm").mkdir(parents=True, exist_ok=True)
    blocked = node.farms[0] / ".builders" / id
    blocked.mkdir(parents=True)
    (blocked / "mine.txt").write_text("somebody's\n")
    return blocked


def test_one_that_cannot_be_placed_goes_on_where_it_is(af: Af, big: Node, other: Node) -> None:
    id = leave_work(af, big)
    blocked = block(other, id)
    done = af("fleet", "drain", "big", "--on", "other", "--yes")
    assert done.returncode == 1, done.stdout
    assert shown(af, id)["host"] == "big"
    ok(af, "wait", id, "--timeout", "120")
    assert len(runtimes(id)) == 1
    assert (blocked / "mine.txt").exists()
    assert (worktree(big, id) / "left.txt").exists()


def test_one_that_goes_on_where_it_was_agrees_to_nothing_new(af: Af, big: Node, other: Node) -> None:
    id = leave_work(af, big)
    block(other, id)
    (big.farms[0] / "agent-farm.toml").write_text('[notify]\ncommand = "true said"\n')
    done = af("fleet", "drain", "big", "--on", "other")
    assert done.returncode == 1, done.stdout
    assert f"{id} is stopped on big and could not be started again" in done.stderr
    assert "nobody has agreed to" in done.stderr
    assert runtimes(id) == []
    ok(af, "resume", id, "--yes")
    ok(af, "wait", id, "--timeout", "120")


def test_what_cannot_be(af: Af, big: Node, machines: Machines, repo: Path) -> None:
    id = spawned(af, "--shell")
    for words, what in (
        (("big", "--undo", "--move"), "--undo cannot be combined with other options"),
        (("big", "--on", "big"), "big is the machine being drained"),
        (("big", "--interrupt"), "--interrupt needs --move or --on"),
        (("bigg",), "Did you mean big?"),
        (("big", "--on", "bigg"), "Did you mean big?"),
    ):
        done = af("fleet", "drain", *words)
        assert done.returncode in (1, 2), words
        assert what in done.stderr
    assert "draining" not in ok(af, "fleet", "status")
    big.stop()
    done = af("fleet", "drain", "big", "--on", "local")
    assert done.returncode == 1
    assert "big cannot be reached" in done.stderr
    big.start()
    assert "draining" in ok(af, "fleet", "status")
    assert len(runtimes(id)) == 1
