"""`kill -9` of `af spawn` at each of its steps: a working builder or no trace, and nobody's file is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agent_farm.disk import is_locked
from tests.conftest import Af
from tests.farm import shims
from tests.farm.stopping import number_of, stopped_spawn
from tests.farm.traces import assert_whole_or_nothing, end_tmux, traces
from tests.gitrepo import commit_files, git, make_repo
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
TREE = {"a.txt": "a\n", "b/c.txt": "c\n"}
PERSONAL = "written by a person\n"


def farms(tmp_path: Path, first: int = 1) -> Iterator[tuple[int, Path]]:
    """Fresh repositories, numbered by the step to stop at."""
    for step in range(first, 400):
        yield step, make_repo(tmp_path / f"farm{step}", TREE)
    raise AssertionError("the walk does not end")


def heal(af: Af, repo: Path, *command: str) -> None:
    done = af(*command, cwd=repo)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def assert_healed(af: Af, repo: Path, what: str) -> bool:
    """Whole and at work (then it is ended), or nothing: at once where a record tells, else by the doctor."""
    locks = repo / ".agent-farm/locks"
    # of git's, which may outlive its af: while it works, nobody touches the builder
    wait_until(lambda: not any(map(is_locked, locks.glob("builder-*.lock"))), what=f"the end of git, {what}")
    recorded = bool(traces(repo).records)
    heal(af, repo, "status")
    if recorded:
        assert_whole_or_nothing(repo, what, but="temporary")
    heal(af, repo, "doctor", "--fix")
    id = assert_whole_or_nothing(repo, what)
    if id is None:
        return False
    assert af("wait", id, "--for", "idle", "--timeout", "300", cwd=repo).returncode == 0, what
    end_tmux()
    return True


def test_killed_at_each_step(tmp_path: Path, af: Af) -> None:
    worked = 0
    for step, repo in farms(tmp_path):
        done = stopped_spawn(repo, "SIGKILL", step)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done
        worked += assert_healed(af, repo, done.stderr)
    assert step > 40, "the walk ended early"
    assert worked >= 2, "no step was late enough to leave a builder"


def test_what_a_person_put_into_a_half_made_builder_stays(tmp_path: Path, repo: Path, af: Af) -> None:
    kept = 0
    first = number_of(stopped_spawn(repo, "SIGKILL", "worktrees.lock"))
    for step, farm in farms(tmp_path, first):
        done = stopped_spawn(farm, "SIGKILL", step)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done
        for worktree in (farm / ".builders").glob("*"):
            (worktree / "mine.txt").write_text(PERSONAL)
            heal(af, farm, "status")
            heal(af, farm, "doctor", "--fix")
            assert (worktree / "mine.txt").read_text() == PERSONAL, done.stderr
            kept += 1
            end_tmux()
    assert kept > 15


def test_what_is_written_into_it_while_it_is_undone_stays(tmp_path: Path, af: Af) -> None:
    """At each call of git, so between the look and the end, too."""
    kept = 0
    for number, farm in farms(tmp_path):
        assert stopped_spawn(farm, "SIGKILL", "launch.json").returncode == -signal.SIGKILL
        (worktree,) = (farm / ".builders").iterdir()
        mine, place = worktree / "mine.txt", tmp_path / f"shim{number}"
        writes = f"  if test -d '{worktree}'; then echo mine > '{mine}'; touch '{place}/written'; fi"
        done = af("status", cwd=farm, env=shims.make(place, "git", number, writes))
        assert done.returncode == 0, done.stderr
        if not (place / "written").exists():
            break
        assert mine.read_text() == "mine\n", shims.calls(place, "git")[number - 1 :]
        kept += 1
    assert kept > 3


def test_a_kept_builder_is_failed_and_says_what_it_holds(repo: Path, af: Af) -> None:
    assert stopped_spawn(repo, "SIGKILL", "launch.json").returncode == -signal.SIGKILL
    (worktree,) = (repo / ".builders").iterdir()
    (worktree / "mine.txt").write_text(PERSONAL)
    (worktree / "README.md").write_text("changed by a person\n")
    (builder,) = json.loads(af("status", "--json").stdout)["builders"]
    assert builder["status"]["state"] == "failed"
    assert builder["status"]["reason"] == "its start was cut short; it has mine.txt, README.md"
    assert af("prune", worktree.name).returncode == 4
    assert (worktree / "mine.txt").read_text() == PERSONAL
    assert (worktree / "README.md").read_text() == "changed by a person\n"


def test_commits_on_the_branch_of_a_half_made_builder_stay(repo: Path, af: Af) -> None:
    assert stopped_spawn(repo, "SIGKILL", "launch.json").returncode == -signal.SIGKILL
    (worktree,) = (repo / ".builders").iterdir()
    commit = commit_files(worktree, {"mine.txt": PERSONAL})
    heal(af, repo, "status")
    heal(af, repo, "doctor", "--fix")
    assert git(repo, "rev-parse", f"builder/{worktree.name}") == commit
    assert git(worktree, "rev-parse", "HEAD") == commit


@pytest.mark.parametrize("has_work", [True, False])
def test_a_spec_whose_branch_is_there_keeps_it_after_a_kill(repo: Path, af: Af, has_work: bool) -> None:
    """Only a branch that the spawn made is undone."""
    commit_files(repo, {"codev/specs/0009-login.md": "# Login\n"})
    git(repo, "switch", "-qc", "builder/0009-login")
    tip = commit_files(repo, {"work.txt": "before\n"}) if has_work else git(repo, "rev-parse", "HEAD")
    git(repo, "switch", "-q", "main")
    killed = stopped_spawn(repo, "SIGKILL", "launch.json", "--project", "9")
    assert killed.returncode == -signal.SIGKILL
    heal(af, repo, "status")
    left = traces(repo).left(but="temporary")
    assert left == {"branches": ["builder/0009-login"]}
    assert git(repo, "rev-parse", "builder/0009-login") == tip


@pytest.mark.parametrize("program", ["git", "tmux"])
@pytest.mark.parametrize(
    "action",
    [
        pytest.param(shims.ENDS_ITS_PARENT, id="killed-and-its-child-goes-on"),
        pytest.param(shims.ENDS_ITS_PARENT_AFTERWARDS, id="killed-after-its-child"),
        pytest.param(shims.ENDS_BOTH, id="both-killed"),
    ],
)
def test_killed_while_a_child_runs(tmp_path: Path, af: Af, program: str, action: str) -> None:
    for step, repo in farms(tmp_path):
        place = tmp_path / f"shim{step}"
        done = af(
            "spawn", "--runtime", "demo", "Fix it", cwd=repo, env=shims.make(place, program, step, action)
        )
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done
        shims.wait_for_orphans(place)
        assert_healed(af, repo, shims.calls(place, program)[step - 1])
    assert step > (3 if program == "git" else 1)


def test_a_git_child_that_is_killed_undoes_the_spawn_at_once(tmp_path: Path, af: Af) -> None:
    refused = 0
    for step, repo in farms(tmp_path):
        place = tmp_path / f"shim{step}"
        env = shims.make(place, "git", step, shims.ENDS_ITSELF)
        done = af("spawn", "--runtime", "demo", "Fix it", cwd=repo, env=env)
        if len(shims.calls(place, "git")) < step:
            break
        call = shims.calls(place, "git")[step - 1]
        assert done.returncode in (0, 1), f"{call}: {done}"
        assert "Traceback" not in done.stderr
        refused += done.returncode
        assert (assert_whole_or_nothing(repo, call) is None) == (done.returncode == 1), call
        end_tmux()
    assert refused > 2


def test_git_that_outlives_its_spawn_is_left_alone(tmp_path: Path, af: Af, repo: Path) -> None:
    """Its lock says that it lives: nothing is healed under its hands."""
    place, gate = tmp_path / "shim", tmp_path / "gate"
    wait_at_gate = f"  kill -9 $PPID\n  while [ ! -e '{gate}' ]; do sleep 0.02; done"
    env = shims.make(place, "git", _number_of("worktree add", tmp_path, af), wait_at_gate)
    code = _spawn_into_a_file(repo, env, tmp_path)
    try:
        assert code == -signal.SIGKILL
        before = traces(repo)
        assert before.records
        status = af("status", cwd=repo)
        assert "creating" in status.stdout
        assert traces(repo) == before
    finally:
        gate.touch()
        shims.wait_for_orphans(place)
    assert not assert_healed(af, repo, "the orphan has ended")


def test_a_tmux_that_outlives_its_spawn_leaves_no_session(tmp_path: Path, af: Af, repo: Path) -> None:
    """tmux comes too late: the spawn is undone already."""
    place, gate = tmp_path / "shim", tmp_path / "gate"
    wait_at_gate = f"  kill -9 $PPID\n  while [ ! -e '{gate}' ]; do sleep 0.02; done"
    env = shims.make(place, "tmux", _number_of("new-session", tmp_path, af, "tmux"), wait_at_gate)
    _spawn_into_a_file(repo, env, tmp_path)
    try:
        assert af("status", cwd=repo).returncode == 0
    finally:
        gate.touch()
        shims.wait_for_orphans(place)
    assert not assert_healed(af, repo, "tmux came too late")


def _spawn_into_a_file(repo: Path, env: Mapping[str, str], tmp_path: Path) -> int:
    """A pipe would stay open for as long as the orphan."""
    with (tmp_path / "output").open("w") as output:
        done = subprocess.run(
            [sys.executable, "-m", "agent_farm", "spawn", "--runtime", "demo", "Fix it"],
            cwd=repo,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
            timeout=300,
        )
    return done.returncode


def _number_of(call: str, tmp_path: Path, af: Af, program: str = "git") -> int:
    """Which call of a whole spawn it is."""
    place = tmp_path / "counting"
    repo = make_repo(tmp_path / "counted", TREE)
    assert (
        af("spawn", "--runtime", "demo", "x", cwd=repo, env=shims.make(place, program, 0, ":")).returncode
        == 0
    )
    end_tmux()
    return next(number for number, line in enumerate(shims.calls(place, program), 1) if call in line)
