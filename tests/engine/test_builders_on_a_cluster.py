"""A builder on a machine of a cluster, by the commands of a builder here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.engine.engines import AF, Cluster
from tests.fleet.test_checkpoints import kept
from tests.fleet.test_fleet import files_with, ok, shown
from tests.gitrepo import git

pytestmark = pytest.mark.slow
SECRET = "hush-4711-hush"


def test_a_life_on_a_cluster(af: Af, repo: Path, cluster: Cluster) -> None:
    cluster.up(af)
    node = cluster.join("n1", slots=1)
    (repo / "agent-farm.toml").write_text('[env]\npass = ["TOKEN_OF_MINE"]\n')
    git(repo, "add", "agent-farm.toml")
    git(repo, "commit", "-qm", "Settings")
    words = ("spawn", "--on", "fleet", "--runtime", "demo", "--yes")
    done = af(*words, "Fix the login", env={"TOKEN_OF_MINE": SECRET})
    assert done.returncode == 0, done.stderr
    id = done.stdout.strip()
    assert files_with(SECRET, cluster.short) == [], "nothing of Ray's has it"
    assert {path.name for path in files_with(SECRET, node.home)} <= {"launch.json"}
    ok(af, "wait", id, "--timeout", "300")
    one = shown(af, id)
    assert (one["host"], one["status"]["state"], one["git"]["ahead"]) == ("n1", "idle", 1)
    assert "1 of 1 slots taken" in ok(af, "fleet", "status")
    full = af(*words, "Another")
    assert full.returncode == 1
    assert "No room on the fleet: n1 1/1" in full.stderr.replace("\n  ", ": ")
    assert git(repo, "branch", "--list", "builder/*").split() == [f"builder/{id}"]

    (node.farms[0] / ".builders" / id / "left.txt").write_text("not committed\n")
    assert ok(af, "fleet", "checkpoint") == f"{id} is at home\n"
    assert git(repo, "show", f"{kept(id)}:work/left.txt") == "not committed"
    assert ok(af, "fleet", "checkpoint") == f"{id} is unchanged\n"
    (node.farms[0] / ".builders" / id / "left.txt").unlink()

    assert "demo>" in ok(af, "capture", id)
    assert ok(af, "send", id, "And now the logout") == f"{id} submitted\n"
    ok(af, "wait", id, "--timeout", "300")
    ok(af, "merge", id)
    there = node.run("git", "rev-parse", f"builder/{id}", cwd=node.farms[0]).strip()
    assert git(repo, "rev-parse", f"refs/agent-farm/fleet/{id}").strip() == there

    node.run(str(AF), "fleet", "down")
    cluster.join("n1", slots=1)
    assert shown(af, id)["status"]["state"] in ("idle", "working"), "it went on without Ray"
    assert f"{id} removed" in ok(af, "prune", "--stop", id)
    assert "0 of 1 slots taken" in ok(af, "fleet", "status")
    assert json.loads(ok(af, "status", "--json"))["builders"] == []
