"""`[check] auto = "idle"`: a turn that ended is proven by itself, one check at a time, and nobody waits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_farm.disk import file_lock
from agent_farm.farm.farm import open_farm
from agent_farm.landing.turn_end import check_all, leave_word
from tests.conftest import Af
from tests.farm.conftest import Spawned, status_of
from tests.gitrepo import commit_files, git, write_files
from tests.waiting import wait_until

Spawn = Callable[..., Spawned]


def proof(af: Af, id: str) -> Any:
    return status_of(af, id)["proof"]


@pytest.fixture
def checked(repo: Path, af: Af) -> Path:
    """Each check says when it begins and ends."""
    log = repo.parent / "checks"
    script = repo.parent / "check"
    script.write_text(f"echo begin >> '{log}'; sleep 0.2; echo end >> '{log}'\n")
    write_files(repo, {".git/info/exclude": "/agent-farm.toml\n/.agent-farm/\n/.builders/\n"})
    for name, value in (("check.command", f"sh '{script}'"), ("check.auto", "idle")):
        assert af("config", "set", name, value).returncode == 0
    return log


def test_a_turn_that_ended_is_proven_by_itself(checked: Path, spawn: Spawn, af: Af) -> None:
    builder = spawn()
    wait_until(lambda: proof(af, builder.id) is not None, timeout=120, what="the proof")
    assert proof(af, builder.id)["state"] == "proven"
    assert proof(af, builder.id)["work"] == builder.tip
    builder.stop()
    assert checked.read_text() == "begin\nend\n"


@pytest.mark.slow
def test_stopping_the_builder_does_not_cut_its_check_short(
    checked: Path, spawn: Spawn, af: Af, repo: Path
) -> None:
    go = repo.parent / "go"
    (repo.parent / "check").write_text(
        f"echo begin >> '{checked}'; until test -e '{go}'; do sleep 0.05; done\n"
    )
    builder = spawn()
    wait_until(checked.exists, timeout=120, what="the check")
    builder.stop()
    go.touch()
    wait_until(lambda: proof(af, builder.id) is not None, timeout=120, what="the proof")
    assert proof(af, builder.id)["state"] == "proven"


def test_without_it_nothing_runs(checked: Path, spawn: Spawn, af: Af, repo: Path) -> None:
    assert af("config", "set", "check.auto", "never").returncode == 0
    builder = spawn()
    launch = json.loads((repo / ".agent-farm/runs" / builder.id / "launch.json").read_text())
    assert launch["check"] is None
    assert not checked.exists()


def test_a_start_asks_for_the_checks_that_will_run_by_themselves(repo: Path, af: Af) -> None:
    (repo / "agent-farm.toml").write_text(
        '[check]\nauto = "idle"\n[check.lint]\ncommand = "echo not agreed"\n'
    )
    done = af("spawn", "--runtime", "demo", "Fix it")
    assert done.returncode == 1
    assert "agent-farm.toml check.lint.command: echo not agreed" in done.stderr


@pytest.mark.slow
def test_many_that_end_at_once_are_checked_one_at_a_time_and_none_is_forgotten(
    checked: Path, spawn: Spawn, af: Af, repo: Path
) -> None:
    assert af("config", "set", "check.auto", "never").returncode == 0
    builders = [spawn("--shell") for _ in range(3)]
    for number, builder in enumerate(builders):
        commit_files(builder.worktree, {f"{number}.txt": "x\n"})
    assert af("config", "set", "check.auto", "idle").returncode == 0
    farm = open_farm(repo)
    turn = [sys.executable, "-P", "-m", "agent_farm.landing.turn_end", str(repo)]
    ending = [subprocess.Popen([*turn, builder.id], stderr=subprocess.PIPE) for builder in builders]
    assert [one.communicate(timeout=300)[1] for one in ending] == [b""] * 3
    assert all(proof(af, builder.id)["state"] == "proven" for builder in builders)
    assert checked.read_text() == "begin\nend\n" * 3
    # word that was left while somebody else was at it is taken up at that one's end
    commit_files(builders[0].worktree, {"more.txt": "x\n"})
    with file_lock(farm.paths.locks / "turn-ends.lock"):
        leave_word(farm, builders[0].id)
        check_all(farm)
        assert proof(af, builders[0].id)["state"] == "stale"
    (repo / ".agent-farm/checks/waiting/directory").mkdir()
    leave_word(farm, "nobody")
    check_all(farm)
    assert proof(af, builders[0].id)["state"] == "proven"
    assert git(repo, "worktree", "list").count("\n") == 3
