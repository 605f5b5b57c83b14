"""Machines of a cluster that die, are cut off or drained: of each builder there is one, with all it had."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import psutil
import pytest

from agent_farm.engine.contract import Engine
from agent_farm.farm.farm import open_farm
from agent_farm.fleet.book import Book, read_book
from agent_farm.fleet.calling import builder_of, engine_of
from agent_farm.operations.fleet.server_keeping import keep_fleet, place_lost
from tests.conftest import Af
from tests.engine.engines import Cluster, Node
from tests.fleet.test_checkpoints import kept
from tests.fleet.test_fleet import ok, shown
from tests.fleet.test_lost_machines import runtimes
from tests.gitrepo import git
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
LOSING = 240.0  # seconds in which a machine has to be missed


def spawned(af: Af, on: str, *words: str) -> str:
    return ok(af, "spawn", "--on", on, "--runtime", "demo", *words).strip()


def worktree(node: Node, id: str) -> Path:
    return node.farms[0] / ".builders" / id


def head_of(node: Node, id: str) -> str:
    return node.run("git", "-C", str(worktree(node, id)), "rev-parse", "HEAD").strip()


def engine_and_book(repo: Path) -> tuple[Engine, Book]:
    book = read_book(open_farm(repo))
    assert book.cluster
    return engine_of(book.cluster), book


def machines(repo: Path) -> set[str]:
    return {room.host for room in engine_and_book(repo)[0].capacity()}


def slots(repo: Path) -> list[tuple[str | None, str | None]]:
    """For whom one is held, and where."""
    engine, book = engine_and_book(repo)
    return sorted((builder_of(book, name), host) for name, host in engine.places().items())


def wait_for_loss(af: Af, *ids: str) -> None:
    ok(af, "config", "set", "fleet.lost_seconds", "5")

    def are_lost() -> bool:
        return all(shown(af, id)["status"]["state"] == "lost" for id in ids)

    wait_until(are_lost, timeout=LOSING, what="the loss of each")


def test_a_machine_that_dies(af: Af, repo: Path, cluster: Cluster) -> None:
    """Whose builders come back on the other one, each once, beside the one that is there."""
    cluster.up(af)
    n1, n2 = cluster.join("n1", slots=3), cluster.join("n2", slots=4)
    ids = [spawned(af, "n1", f"Fix part {number}") for number in range(3)]
    other = spawned(af, "n2", "--shell")
    for id in ids:
        ok(af, "wait", id, "--timeout", "300")
        (worktree(n1, id) / "left.txt").write_text(f"{id}\n")
    heads = {id: head_of(n1, id) for id in ids}
    undisturbed = runtimes(other)
    ok(af, "fleet", "checkpoint")
    cluster.lose("n1")
    wait_for_loss(af, *ids)
    assert (other, "n2") in slots(repo)

    full = af("recover", ids[0], "--on", "n1", "--yes")
    assert full.returncode == 1
    assert ok(af, "recover", ids[0], "--on", "fleet", "--yes") == f"{ids[0]} resumed\n"
    place_lost(repo, os.environ)
    assert shown(af, ids[1])["status"]["state"] == "lost", "somebody is to be asked"
    ok(af, "config", "set", "fleet.restart", "auto")
    place_lost(repo, os.environ)
    for id in ids:
        one = shown(af, id)
        assert (one["host"], one["status"]["state"]) == ("n2", "idle")
        assert (worktree(n2, id) / "left.txt").read_text() == f"{id}\n"
        assert head_of(n2, id) == heads[id]
        assert len(runtimes(id)) == 1
    assert runtimes(other) == undisturbed
    assert git(repo, "branch", "--list", "builder/*").split() == sorted(
        f"builder/{id}" for id in [*ids, other]
    )
    assert slots(repo) == sorted((id, "n2") for id in (*ids, other))
    assert ok(af, "send", ids[0], "And now the logout") == f"{ids[0]} submitted\n"
    ok(af, "wait", ids[0], "--timeout", "300")
    (talk,) = (n2.farms[0] / ".agent-farm/runs" / ids[0] / "demo").glob("*.json")
    assert json.loads(talk.read_text())["messages"] == 2, "the conversation goes on"
    ok(af, "merge", ids[0])


def test_a_partition_leaves_one_of_each(af: Af, repo: Path, cluster: Cluster) -> None:
    """Once it can be reached again Ray ends there, since the cluster has given it up: it joins anew."""
    cluster.up(af)
    n1, n2 = cluster.join("n1", slots=1), cluster.join("n2", slots=1)
    id = spawned(af, "n1", "Fix the login")
    ok(af, "wait", id, "--timeout", "300")
    assert keep_fleet(repo) == []
    cluster.signal("n1", signal.SIGSTOP)
    wait_for_loss(af, id)
    ok(af, "recover", id, "--on", "n2", "--yes")
    wait_until(lambda: len(runtimes(id)) == 2, what="both: nobody can stop the one that is out of reach")
    (worktree(n1, id) / "meanwhile.txt").write_text("written while it was out of reach\n")
    wait_until(lambda: machines(repo) == {"n2"}, timeout=LOSING, what="the loss of n1")
    cluster.signal("n1", signal.SIGCONT)
    wait_until(lambda: not psutil.pid_exists(n1.pid), timeout=LOSING, what="the end of Ray there")
    cluster.join("n1", slots=1)
    assert "n1 " in ok(af, "fleet", "status")
    wait_until(lambda: len(runtimes(id)) == 1, what="the end of the other one, at the first answer")
    assert keep_fleet(repo) == []
    told = ok(af, "fleet", "status")
    (ref,) = (word for word in told.split() if word.startswith(f"refs/agent-farm/fleet/{id}@"))
    assert git(repo, "show", f"{ref}:work/meanwhile.txt") == "written while it was out of reach"
    assert (worktree(n1, id) / "meanwhile.txt").exists()
    assert not (worktree(n2, id) / "meanwhile.txt").exists()
    assert slots(repo) == [(id, "n2")]
    assert ok(af, "send", id, "And now the logout") == f"{id} submitted\n"
    assert shown(af, id)["host"] == "n2"


def test_a_machine_that_is_drained(af: Af, repo: Path, cluster: Cluster) -> None:
    """Its builders go to the other one, as far as there is room, and to this machine."""
    cluster.up(af)
    n1, n2 = cluster.join("n1", slots=3), cluster.join("n2", slots=1)
    first, second, busy = (spawned(af, "n1", text) for text in ("Fix the login", "Fix it", "[[sleep:600]]"))
    for id in (first, second):
        ok(af, "wait", id, "--timeout", "300")
        (worktree(n1, id) / "left.txt").write_text("not committed\n")
    ok(af, "wait", busy, "--for", "working", "--timeout", "300")
    assert slots(repo) == sorted((id, "n1") for id in (first, second, busy))

    done = af("fleet", "drain", "n1", "--move", "--yes", "--json")
    assert done.returncode == 2, "n2 takes one"
    found = json.loads(done.stdout)
    ((moved, on),) = ((one["id"], one["on"]) for one in found["moved"])
    (failed,) = found["failed"]
    assert (on, {moved, failed["id"]}) == ("n2", {first, second})
    assert failed["what"] == "No other machine takes builders"
    assert [(one["id"], one["state"]) for one in found["stay"]] == [(busy, "working")]
    assert slots(repo) == sorted([(moved, "n2"), (failed["id"], "n1"), (busy, "n1")])
    assert (worktree(n2, moved) / "left.txt").read_text() == "not committed\n"
    assert (shown(af, moved)["host"], shown(af, moved)["status"]["state"]) == ("n2", "idle")
    for id in (first, second, busy):
        assert len(runtimes(id)) == 1

    ok(af, "fleet", "drain", "n1", "--on", "local", "--interrupt", "--yes")
    assert (repo / ".builders" / failed["id"] / "left.txt").read_text() == "not committed\n"
    assert shown(af, busy)["status"]["state"] == "interrupted"
    assert slots(repo) == [(moved, "n2")]
    assert git(repo, "for-each-ref", "--format=%(refname)", kept(moved)) == kept(moved)
    ok(af, "fleet", "remove", "n1")
