"""Without anybody's doing: checkpoints come home, lost builders are placed again, and once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from agent_farm.operations.fleet.server_keeping import place_lost
from agent_farm.server.launching import running_server
from agent_farm.server.stopping import stop_server
from tests.conftest import Af
from tests.farm.stopping import killed, number_of
from tests.fleet.machines import Node
from tests.fleet.test_checkpoints import kept, worktree
from tests.fleet.test_fleet import ok, shown, spawned
from tests.fleet.test_lost_machines import kill, leave_work, other, runtimes, wait_for_loss
from tests.gitrepo import git
from tests.waiting import wait_until

__all__ = ["other"]  # a fixture

pytestmark = pytest.mark.slow


def test_the_server_brings_it_home(af: Af, big: Node, repo: Path) -> None:
    done = af("spawn", "--on", "big", "--runtime", "demo", "--shell", env={"AF_SERVER": "on"})
    assert done.returncode == 0, done.stderr
    id = done.stdout.strip()
    (worktree(big, id) / "left.txt").write_text("not committed\n")
    try:
        assert running_server(repo) is not None
        wait_until(
            lambda: (
                "left.txt" in git(repo, "ls-tree", "-r", "--name-only", kept(id))
                if git(repo, "for-each-ref", kept(id))
                else ""
            ),
            what="its checkpoint",
        )
    finally:
        stop_server(repo, now=True)


def test_by_itself_where_that_is_set(af: Af, big: Node, other: Node, repo: Path) -> None:
    id = leave_work(af, big)
    kill(big)
    wait_for_loss(af, id)
    place_lost(repo, os.environ)
    assert shown(af, id)["status"]["state"] == "lost", "somebody is to be asked"
    ok(af, "config", "set", "fleet.restart", "auto")
    place_lost(repo, os.environ)
    one = shown(af, id)
    assert (one["host"], one["status"]["state"]) == ("other", "idle")
    assert (worktree(other, id) / "left.txt").exists()
    place_lost(repo, os.environ)
    assert len(runtimes(id)) == 1


def test_placing_again_killed_on_the_way(af: Af, big: Node, other: Node, repo: Path) -> None:
    id = leave_work(af, big)
    kill(big)
    wait_for_loss(af, id)
    words = ("recover", id, "--on", "other", "--yes")
    step, kills = 20, 0
    while True:
        done = killed(repo, step, *words)
        if done.returncode != -signal.SIGKILL:
            break
        kills += 1
        step = number_of(done) + 6
    if done.returncode:  # it was there before this one began
        assert f"{id} is not lost" in done.stdout + done.stderr or "is on other" in done.stderr, done.stderr
    assert kills > 4
    one = shown(af, id)
    assert (one["host"], one["branch"]) == ("other", f"builder/{id}")
    wait_until(lambda: len(runtimes(id)) == 1, what="one of it")
    assert (worktree(other, id) / "left.txt").read_text() == "not committed\n"
    assert git(repo, "branch", "--list", "builder/*").strip() == f"builder/{id}"


def test_a_machine_widens_nothing(af: Af, big: Node, other: Node, repo: Path) -> None:
    """What it says of permissions, and of what follows once it has landed, does not go elsewhere."""
    id = spawned(af, "--permissions", "ask", "--shell")
    ok(af, "fleet", "checkpoint")
    sound = big.program.read_text()
    lie = 's/"permissions": "[a-z]*"/"permissions": "all"/; s/"ephemeral": false/"ephemeral": true/'
    big.program.write_text(sound.replace('"$@"', f"\"$@\" | sed -u '{lie}'").replace("exec ", ""))
    assert shown(af, id)["permissions"] == "all"
    kill(big)
    wait_for_loss(af, id)
    ok(af, "recover", id, "--on", "local", "--yes")
    one = shown(af, id)
    assert (one["permissions"], one["ephemeral"]) == ("ask", False)
