"""A builder on another machine, from its spawn to its restore, by the commands of a builder here."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import Af
from tests.farm import shims
from tests.fleet.machines import Machines, Node
from tests.gitrepo import commit_files, git
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


def spawned(af: Af, *words: str) -> str:
    done = af("spawn", "--on", "big", "--runtime", "demo", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def ok(af: Af, *words: str) -> str:
    done = af(*words)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def shown(af: Af, id: str) -> dict[str, Any]:
    (one,) = json.loads(ok(af, "status", "--fresh", id, "--json"))["builders"]
    return dict(one)


def test_a_life(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "Fix the login")
    assert git(repo, "rev-parse", f"builder/{id}") == git(repo, "rev-parse", "main")
    assert id in big.run(str(big.program), "status")
    ok(af, "wait", id, "--timeout", "120")
    one = shown(af, id)
    assert (one["host"], one["status"]["state"], one["git"]["ahead"]) == ("big", "idle", 1)
    assert "big" in ok(af, "status", "--fresh")
    assert "demo>" in ok(af, "capture", id)
    assert "Stop" in ok(af, "logs", id)
    assert ok(af, "send", id, "And now the logout") == f"{id} submitted\n"

    (big.farms[0] / ".builders" / id / "left.txt").write_text("not committed\n")
    assert "+not committed" in ok(af, "diff", id)

    merged = af("merge", id)
    assert merged.returncode == 0, merged.stderr
    assert "1 uncommitted file on big" in merged.stderr
    assert git(repo, "rev-parse", f"builder/{id}") == big.run("git", "rev-parse", f"builder/{id}").strip()
    assert [name for name in git(repo, "ls-files").splitlines() if name.startswith("demo-")]

    refused = af("prune", "--stop", id)
    assert refused.returncode == 4
    assert "untracked  left.txt" in refused.stderr
    (big.farms[0] / ".builders" / id / "left.txt").unlink()
    assert ok(af, "stop", id) == f"{id} stopped\n"
    assert "landed" in ok(af, "status", "--fresh")
    assert ok(af, "resume", id).strip() == id
    ok(af, "wait", id, "--timeout", "120")
    assert f"{id} removed, with builder/{id}" in ok(af, "prune", "--stop", id)
    assert git(repo, "branch", "--list", "builder/*") == ""
    assert id not in big.run(str(big.program), "status")
    assert id in ok(af, "restore", "--list")
    ok(af, "restore", id)
    assert shown(af, id)["status"]["state"] == "stopped"
    assert git(repo, "branch", "--list", "builder/*").strip() == f"builder/{id}"


def test_what_is_not_for_it_is_refused_with_the_command_that_does_it_there(af: Af, big: Node) -> None:
    id = spawned(af, "--shell")
    for words in (["path", id], ["eject", id]):
        done = af(*words)
        assert done.returncode == 2, done.stdout
        assert f"{id} is on big" in done.stderr
        assert "hint: ssh -t big" in done.stderr
    for word in ("--ephemeral", "--stack=x", "--after=x"):
        done = af("spawn", "--on", "big", "Fix", word)
        assert done.returncode == 2
        assert "cannot be combined with --on" in done.stderr
    ok(af, "config", "set", "worktree.uncommitted", "true")
    assert "worktree.uncommitted cannot be combined" in af("spawn", "--on", "big", "Fix").stderr
    ok(af, "config", "unset", "worktree.uncommitted")
    assert "2 builders" not in ok(af, "fleet", "status")
    assert af("fleet", "remove", "big").returncode == 4


def test_a_worktree_there_is_prepared_once_more(af: Af, big: Node, repo: Path) -> None:
    setup = 'printf "%s" "$TOKEN_OF_MINE" >prepared'
    (repo / "agent-farm.toml").write_text(
        f"[worktree]\nsetup = '{setup}'\n[env]\npass = [\"TOKEN_OF_MINE\"]\n"
    )
    git(repo, "add", "agent-farm.toml")
    git(repo, "commit", "-qm", "Setup")
    id = spawned(af, "--shell", "--yes")
    ok(af, "wait", id, "--timeout", "120")
    done = af("setup", "--yes", id, env={"TOKEN_OF_MINE": "hush-4711-hush"})
    assert done.returncode == 0, done.stderr
    assert (big.farms[0] / ".builders" / id / "prepared").read_text() == "hush-4711-hush"


def test_what_has_not_landed_stays_at_home_when_it_is_thrown_away(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "Try something")
    ok(af, "wait", id, "--timeout", "120")
    assert af("prune", "--stop", id).returncode == 4
    ok(af, "prune", "--stop", "--discard-commits", id)
    assert git(repo, "log", "--format=%s", f"refs/agent-farm/fleet/{id}", "^main") != ""
    assert "out of the fleet" in ok(af, "fleet", "remove", "big")
    assert ok(af, "status", "--fresh") == ""


def test_the_landing_queue_takes_work_from_there(af: Af, big: Node, repo: Path) -> None:
    first, second = spawned(af, "Fix the login"), spawned(af, "Fix the logout")
    ok(af, "wait", first, second, "--timeout", "120")
    busy = spawned(af, "--shell")
    ok(af, "conflicts")
    ok(af, "config", "set", "check.command", "true")
    git(repo, "add", "agent-farm.toml")
    git(repo, "commit", "-qm", "Checks")
    ok(af, "land", "--yes")
    files = [name for name in git(repo, "ls-files").splitlines() if name.startswith("demo-")]
    assert len(files) == 2
    assert busy not in git(repo, "log", "--format=%B")
    assert ok(af, "prune", "--stop", first, second).count("removed") == 2


def test_a_dry_run_makes_nothing(af: Af, big: Node, repo: Path) -> None:
    done = ok(
        af, "spawn", "--on", "big", "--runtime", "demo", "--dry-run", "--name", "login", "Fix the login"
    )
    assert "builder/login" in done
    assert git(repo, "branch", "--list", "builder/*") == ""
    assert ok(af, "status", "--fresh") == ""


def test_the_setting_sends_builders_there_and_local_keeps_them_here(af: Af, big: Node, repo: Path) -> None:
    ok(af, "config", "set", "spawn.on", "big")
    there = ok(af, "spawn", "--runtime", "demo", "--shell").strip()
    here = ok(af, "spawn", "--runtime", "demo", "--on", "local", "--shell").strip()
    assert (shown(af, there)["host"], shown(af, here)["host"]) == ("big", None)
    told = ok(af, "stop", there, here)
    assert sorted(told.split()) == sorted([there, "stopped", here, "stopped"])
    assert af("spawn", "--on", "bigg", "Fix").stderr.count("Did you mean big?") == 1


def test_a_variable_reaches_its_builder_and_no_other_place(af: Af, big: Node, repo: Path) -> None:
    (repo / "agent-farm.toml").write_text('[env]\npass = ["TOKEN_OF_MINE"]\n')
    git(repo, "add", "agent-farm.toml")
    git(repo, "commit", "-qm", "Settings")
    secret = f"hush-{os.urandom(8).hex()}-hush"  # other runs look at the same processes
    words = ("spawn", "--on", "big", "--runtime", "demo", "--shell")
    asked = af(*words, env={"TOKEN_OF_MINE": secret})
    assert asked.returncode == 1
    assert "af spawn --yes" in asked.stderr
    done = af(*words, "--yes", env={"TOKEN_OF_MINE": secret})
    assert done.returncode == 0, done.stderr
    id = done.stdout.strip()
    wait_until(lambda: (id, secret) in environments(), what="its builder's environment")
    assert {builder for builder, value in environments() if value == secret} <= {id, None}
    assert {path.name for path in files_with(secret, big.directory)} <= {"launch.json"}, "as of one here"
    assert files_with(secret, repo) == []


def environments() -> list[tuple[str | None, str | None]]:
    """Builder and variable of every process that may be asked."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            environ = process.environ()
            found.append((environ.get("AF_BUILDER_ID"), environ.get("TOKEN_OF_MINE")))
    return found


def files_with(secret: str, directory: Path) -> list[Path]:
    """What a builder that has just started takes away again meanwhile is none."""
    found = []
    for path in directory.rglob("*"):
        with suppress(OSError):
            if path.is_file() and secret in path.read_text("latin-1"):
                found.append(path)
    return found


def test_what_a_machine_has_is_not_sent_again(af: Af, big: Node, repo: Path, tmp_path: Path) -> None:
    """One call, and no git that asks; where its repository was made anew, the commit is sent after all."""
    spawned(af, "--shell")

    def calls(name: str) -> list[str]:
        env = shims.make(tmp_path / name, "ssh", 0, ":")
        done = af("spawn", "--on", "big", "--runtime", "demo", "--shell", env=env)
        assert done.returncode == 0, done.stderr
        return [line.rpartition(" -- ")[2] for line in shims.calls(tmp_path / name, "ssh")]

    assert [call.split()[-2:] for call in calls("second")] == [["fleet", "answer"]]
    commit_files(repo, {"new.txt": "x\n"})
    assert len(calls("moved")) == 2
    (place,) = big.farms
    place.rename(big.home / "lost")
    ok(af, "fleet", "status")
    assert len(calls("another disk")) == 3


def test_two_machines_and_this_one(af: Af, big: Node, machines: Machines) -> None:
    machines("other")
    ok(af, "fleet", "add", "ssh://other")
    ids = [
        ok(af, "spawn", "--runtime", "demo", "--shell", "--on", on).strip()
        for on in ("big", "other", "local")
    ]
    found = json.loads(ok(af, "status", "--fresh", "--json"))["builders"]
    assert {one["id"]: one["host"] for one in found} == dict(zip(ids, ("big", "other", None), strict=True))
    done = af("send", *ids, "hello")
    assert sorted(done.stdout.split()) == sorted([*ids, *["submitted"] * 3])
