"""A machine that dies, and one that was only out of reach: of each builder there is one, with all it had."""

from __future__ import annotations

import json
from pathlib import Path

import psutil
import pytest

from tests.conftest import Af, end_processes, end_tmux_servers
from tests.fleet.machines import Machines, Node
from tests.fleet.test_checkpoints import worktree
from tests.fleet.test_fleet import ok, shown, spawned
from tests.gitrepo import git
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


def kill(node: Node) -> None:
    """As when its power is cut: the daemon, tmux, panes, runtimes."""
    node.stop()
    end_tmux_servers(node.sockets)
    end_processes(node.home)


def wait_for_loss(af: Af, id: str) -> None:
    ok(af, "config", "set", "fleet.lost_seconds", "5")
    wait_until(lambda: shown(af, id)["status"]["state"] == "lost", what="the loss")


def runtimes(id: str) -> list[int]:
    """Processes of that builder's runtimes, on whatever machine."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("AF_BUILDER_ID") == id and "demo_agent" in " ".join(process.cmdline()):
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


@pytest.fixture
def other(machines: Machines, big: Node, af: Af) -> Node:
    node = machines("other")
    ok(af, "fleet", "add", "ssh://other")
    return node


def leave_work(af: Af, big: Node) -> str:
    id = spawned(af, "Fix the login")
    ok(af, "wait", id, "--timeout", "120")
    there = worktree(big, id)
    (there / "left.txt").write_text("not committed\n")
    (there / "staged.txt").write_text("staged\n")
    big.run("git", "-C", str(there), "add", "staged.txt")
    ok(af, "fleet", "checkpoint")
    return id


def test_a_machine_that_dies(af: Af, big: Node, other: Node, repo: Path) -> None:
    id = leave_work(af, big)
    head = big.run("git", "-C", str(worktree(big, id)), "rev-parse", "HEAD")
    kill(big)
    early = af("recover", id, "--on", "other", "--yes")
    assert early.returncode == 1
    assert f"{id} is not lost yet: big cannot be reached" in early.stderr
    wait_for_loss(af, id)
    reason = shown(af, id)["status"]["reason"]
    assert "it was idle" in reason
    assert "its last checkpoint was made" in reason
    assert ok(af, "recover", id, "--on", "other", "--yes") == f"{id} resumed\n"
    one = shown(af, id)
    assert (one["host"], one["branch"]) == ("other", f"builder/{id}")
    there = worktree(other, id)
    assert other.run("git", "-C", str(there), "status", "--porcelain").splitlines() == [
        "A  staged.txt",
        "?? left.txt",
    ]
    assert (there / "left.txt").read_text() == "not committed\n"
    assert other.run("git", "-C", str(there), "rev-parse", "HEAD") == head
    assert ok(af, "send", id, "And now the logout") == f"{id} submitted\n"
    ok(af, "wait", id, "--timeout", "120")
    (talk,) = (other.farms[0] / ".agent-farm/runs" / id / "demo").glob("*.json")
    assert json.loads(talk.read_text())["messages"] == 2, "the conversation goes on"
    ok(af, "merge", id)
    git(repo, "merge-base", "--is-ancestor", head.strip(), "main")


def test_it_comes_back_on_this_machine(af: Af, big: Node, repo: Path) -> None:
    id = leave_work(af, big)
    kill(big)
    wait_for_loss(af, id)
    ok(af, "recover", id, "--on", "local", "--yes")
    one = shown(af, id)
    assert (one["host"], one["base"]) == (None, "main")
    assert (repo / ".builders" / id / "left.txt").read_text() == "not committed\n"
    assert ok(af, "send", id, "And now the logout") == f"{id} submitted\n"
    ok(af, "wait", id, "--timeout", "120")
    (talk,) = (repo / ".agent-farm/runs" / id / "demo").glob("*.json")
    assert json.loads(talk.read_text())["messages"] == 2
    assert af("recover", id, "--yes").returncode == 2, "it is not lost"


def test_a_partition_leaves_one_of_each(af: Af, big: Node, other: Node, repo: Path) -> None:
    id = leave_work(af, big)
    big.stop()
    wait_for_loss(af, id)
    assert len(runtimes(id)) == 1
    ok(af, "recover", id, "--on", "other", "--yes")
    wait_until(lambda: len(runtimes(id)) == 2, what="both: nobody can stop the one that is out of reach")
    (worktree(big, id) / "meanwhile.txt").write_text("written while it was out of reach\n")
    early = af("fleet", "remove", "big")
    assert early.returncode == 4
    assert f"The work that {id} had on big before it was placed elsewhere has not come home" in early.stderr
    big.start()
    (row,) = json.loads(ok(af, "status", "--json"))["builders"]
    assert row["host"] == "other"
    wait_until(lambda: len(runtimes(id)) == 1, what="the end of the other one, at the first answer")
    ok(af, "fleet", "checkpoint")
    told = ok(af, "fleet", "status")
    (ref,) = (word for word in told.split() if word.startswith(f"refs/agent-farm/fleet/{id}@"))
    assert git(repo, "show", f"{ref}:work/meanwhile.txt") == "written while it was out of reach"
    assert (worktree(big, id) / "meanwhile.txt").exists()
    assert not (worktree(other, id) / "meanwhile.txt").exists()
    assert ok(af, "send", id, "And now the logout") == f"{id} submitted\n"
    assert shown(af, id)["host"] == "other"


def test_what_had_ended_is_not_run_again(af: Af, big: Node, other: Node, repo: Path) -> None:
    id = leave_work(af, big)
    ok(af, "stop", id)
    ok(af, "fleet", "checkpoint")
    kill(big)
    ok(af, "config", "set", "fleet.lost_seconds", "5")
    wait_until(
        lambda: shown(af, id)["status"]["state"] == "stopped" and shown(af, id)["status"]["reason"],
        what="what is known of it",
    )
    done = af("recover", id, "--on", "other", "--yes")
    assert done.returncode == 0, done.stderr
    assert shown(af, id)["status"]["state"] == "stopped"
    assert runtimes(id) == []
    assert (worktree(other, id) / "left.txt").exists()


def test_nothing_is_placed_where_the_machine_answers(af: Af, big: Node, other: Node) -> None:
    id = spawned(af, "--shell")
    done = af("recover", id, "--on", "other", "--yes")
    assert done.returncode == 2
    assert f"{id} is on big, which answers" in done.stderr
