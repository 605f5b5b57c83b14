"""A merge is atomic to the person: two at once, somebody who commits, Ctrl-C, a kill, a failing git."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_farm.disk import file_lock, is_locked
from agent_farm.paths import FarmPaths
from tests.farm import shims
from tests.farm.conftest import Spawned
from tests.farm.stopping import killed
from tests.gitrepo import commit_files, git, write_files
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

Spawn = Callable[..., Spawned]

# A filter's parent is git, whose parent is af; git has a session of its own then.
_AF = "$(cut -d' ' -f4 /proc/$PPID/stat)"
KILL_GIT = "kill -9 0"
KILL_BOTH = f"kill -9 {_AF}; kill -9 0"
INTERRUPT = f"kill -INT -{_AF}; cat"
FAIL = "exit 1"


@pytest.fixture
def builder(spawn: Spawn, repo: Path) -> Spawned:
    """Its commit changes, removes and adds files; at `m.trap`, amid them, git runs a filter."""
    commit_files(repo, {"a": "old\n", "gone": "gone\n", "z": "old\n"}, "more")
    builder = spawn("--shell")
    git(builder.worktree, "rm", "-q", "gone")
    commit_files(
        builder.worktree,
        {"a": "new\n", "d/new": "new\n", "m.trap": "trap\n", "x/new": "x" * 9000, "z": "new\n"},
        "work",
    )
    (repo / ".git/info/attributes").write_text("*.trap filter=trap\n")
    git(repo, "config", "filter.trap.required", "true")
    git(repo, "config", "filter.trap.clean", "cat")
    set_trap(repo, "cat")
    return builder


def set_trap(repo: Path, script: str) -> None:
    git(repo, "config", "filter.trap.smudge", script)


def state(repo: Path) -> tuple[object, ...]:
    files = {
        path.relative_to(repo).as_posix(): path.read_bytes()
        for path in repo.rglob("*")
        if path.is_file() and not {".git", ".builders", ".agent-farm"} & set(path.relative_to(repo).parts)
    }
    return files, git(repo, "rev-parse", "HEAD"), git(repo, "status", "--porcelain", "-uall")


def traces_in_git(repo: Path) -> list[str]:
    names = ("agent-farm-merge.json", "agent-farm-index", "agent-farm-index.lock", "index.lock")
    return [name for name in names if (repo / ".git" / name).exists()]


def merge(builder: Spawned) -> subprocess.CompletedProcess[str]:
    return builder.af("merge", builder.id, new_session=True)


def assert_landed(builder: Spawned) -> None:
    assert git(builder.repo, "diff", builder.branch) == ""
    assert git(builder.repo, "status", "--porcelain", "-uall") == ""
    assert (builder.repo / "x/new").read_text() == "x" * 9000
    assert traces_in_git(builder.repo) == []


@pytest.mark.parametrize("trap", [FAIL, KILL_GIT])
def test_what_git_had_written_when_it_failed_is_taken_back_at_once(builder: Spawned, trap: str) -> None:
    write_files(builder.repo, {"d/own": "a person's\n"})
    before = state(builder.repo)
    set_trap(builder.repo, trap)
    done = merge(builder)
    assert done.returncode == 1, done.stderr
    assert str(builder.repo) in done.stderr
    assert state(builder.repo) == before
    assert traces_in_git(builder.repo) == []
    set_trap(builder.repo, "cat")
    assert merge(builder).returncode == 0
    (builder.repo / "d/own").unlink()
    assert_landed(builder)


@pytest.mark.parametrize("command", [("doctor", "--fix"), ("merge",)])
def test_a_kill_in_the_middle_is_settled_by_the_next_command(builder: Spawned, command: tuple[str]) -> None:
    before = state(builder.repo)
    set_trap(builder.repo, KILL_BOTH)
    assert merge(builder).returncode == -9
    assert state(builder.repo) != before
    assert "index.lock" in traces_in_git(builder.repo)
    set_trap(builder.repo, "cat")

    if command == ("merge",):
        done = merge(builder)
        assert done.returncode == 0, done.stderr
        assert "is undone" in done.stderr
        assert_landed(builder)
        return
    found = builder.af("doctor")
    assert found.returncode == 1
    assert f"a merge of {builder.branch} into main was interrupted" in found.stdout + found.stderr
    builder.af(*command)
    assert state(builder.repo) == before
    assert traces_in_git(builder.repo) == []
    assert "was interrupted" not in builder.af("doctor").stdout


def test_what_a_person_wrote_after_a_kill_is_left_and_named(builder: Spawned) -> None:
    set_trap(builder.repo, KILL_BOTH)
    assert merge(builder).returncode == -9
    set_trap(builder.repo, "cat")
    write_files(builder.repo, {"d/new": "mine now\n", "d/beside": "mine\n"})
    done = builder.af("doctor", "--fix")
    assert "left as they are: d/new" in done.stdout + done.stderr
    assert (builder.repo / "d/new").read_text() == "mine now\n"
    assert (builder.repo / "d/beside").read_text() == "mine\n"
    assert (builder.repo / "a").read_text() == "old\n"
    assert git(builder.repo, "status", "--porcelain", "-uall").split("\n") == ["?? d/beside", "?? d/new"]


def test_a_person_who_removes_the_lock_and_commits_after_a_kill_keeps_the_commit(builder: Spawned) -> None:
    set_trap(builder.repo, KILL_BOTH)
    assert merge(builder).returncode == -9
    set_trap(builder.repo, "cat")
    (builder.repo / ".git/index.lock").unlink()
    write_files(builder.repo, {"z": "a person's\n"})
    git(builder.repo, "commit", "-q", "-m", "own", "z")
    builder.af("doctor", "--fix")
    assert git(builder.repo, "status", "--porcelain", "-uall") == ""
    assert git(builder.repo, "log", "-1", "--format=%s") == "own"
    assert (builder.repo / "z").read_text() == "a person's\n"
    assert (builder.repo / "gone").exists()


def _number(builder: Spawned, twin: Spawned, tmp_path: Path, word: str) -> int:
    """Which of the git calls of a merge has that word."""
    env = shims.make(tmp_path / "looking", "git", 0, ":")
    assert twin.af("merge", twin.id, env=env).returncode == 0
    calls = shims.calls(tmp_path / "looking", "git")
    return next(number for number, call in enumerate(calls, 1) if f" {word} " in f" {call} ")


@pytest.mark.parametrize("word", ["read-tree", "update-ref"])
@pytest.mark.parametrize("action", [shims.ENDS_ITS_PARENT, shims.ENDS_ITS_PARENT_AFTERWARDS, shims.ENDS_BOTH])
def test_a_kill_at_each_call_of_the_last_step(
    builder: Spawned, spawn: Spawn, tmp_path: Path, word: str, action: str
) -> None:
    twin = spawn("--shell")
    commit_files(twin.worktree, {"twin": "twin\n"})
    number = _number(builder, twin, tmp_path, word)
    before = state(builder.repo)
    env = shims.make(tmp_path / "shim", "git", number, action)
    assert builder.af("merge", builder.id, env=env, new_session=True).returncode == -9
    shims.wait_for_orphans(tmp_path / "shim")
    builder.af("doctor", "--fix")
    assert traces_in_git(builder.repo) == []
    if git(builder.repo, "rev-parse", "HEAD") == before[1]:
        assert state(builder.repo) == before
        assert word == "read-tree" or action == shims.ENDS_BOTH
        assert merge(builder).returncode == 0
    assert git(builder.repo, "status", "--porcelain", "-uall") == ""
    assert (builder.repo / "z").read_text() == "new\n"


@pytest.mark.parametrize("command", [("doctor", "--fix"), ("merge",)])
def test_locks_of_refs_that_a_kill_leaves_are_the_landings_own(
    builder: Spawned, command: tuple[str, ...]
) -> None:
    """git asks the hook when it has them all, of the branch, of HEAD and of ORIG_HEAD."""

    def locks() -> set[str]:
        found = {path.relative_to(git_dir).as_posix() for path in git_dir.rglob("*.lock")}
        return found - {"agent-farm-exclude.lock"}  # of af's own, which holds nothing by being there

    before, git_dir = state(builder.repo), builder.repo / ".git"
    af = "$(cut -d' ' -f4 /proc/$PPID/stat)"
    hook = git_dir / "hooks/reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntest $1 != prepared || kill -9 {af} $PPID\n")
    hook.chmod(0o755)
    assert merge(builder).returncode == -9
    hook.unlink()
    assert locks() == {"HEAD.lock", "ORIG_HEAD.lock", "refs/heads/main.lock", "index.lock"}
    if command == ("merge",):
        done = merge(builder)
        assert done.returncode == 0, done.stderr
        assert_landed(builder)
        return
    assert builder.af(*command).returncode == 0
    assert state(builder.repo) == before
    assert locks() == set()


def test_a_lock_of_head_that_is_older_than_the_landing_is_named_and_stays(builder: Spawned) -> None:
    lock = builder.repo / ".git/HEAD.lock"
    lock.touch()
    os.utime(lock, (1, 1))
    set_trap(builder.repo, KILL_BOTH)
    assert merge(builder).returncode == -9
    set_trap(builder.repo, "cat")
    done = builder.af("doctor", "--fix")
    assert done.returncode == 1
    assert f"hint: rm {lock}" in done.stderr
    assert lock.exists()


def test_ctrl_c_in_the_last_step_waits_for_its_end(builder: Spawned) -> None:
    set_trap(builder.repo, INTERRUPT)
    done = merge(builder)
    assert done.returncode == 130, done.stderr
    assert f"{builder.id} landed on main" in done.stdout
    assert_landed(builder)


def _signalled_in_the_check(builder: Spawned, number: signal.Signals) -> tuple[int, str]:
    begun = builder.repo.parent / "begun"
    assert builder.af("config", "set", "merge.check", f"touch '{begun}'; sleep 600").returncode == 0
    command = [sys.executable, "-m", "agent_farm", "merge", builder.id]
    merging = subprocess.Popen(command, cwd=builder.repo, stderr=subprocess.PIPE, text=True)
    wait_until(begun.exists, timeout=300, what="the check")
    merging.send_signal(number)
    return merging.wait(60), merging.communicate(timeout=300)[1]


def test_ctrl_c_before_the_last_step_says_that_nothing_landed(builder: Spawned, repo: Path) -> None:
    before = state(repo)
    write_files(repo, {".git/info/exclude": "/agent-farm.toml\n/.agent-farm/\n/.builders/\n"})
    code, told = _signalled_in_the_check(builder, signal.SIGINT)
    assert code == 130, told
    assert f"Not landed: {builder.id}" in told
    (repo / "agent-farm.toml").unlink()
    assert state(repo) == before
    assert traces_in_git(repo) == []


def test_a_git_that_outlives_its_af_holds_up_the_next_merge(builder: Spawned, tmp_path: Path) -> None:
    go = tmp_path / "go"
    set_trap(builder.repo, f"kill -9 {_AF}; until test -e '{go}'; do sleep 0.02; done; cat")
    assert merge(builder).returncode == -9
    lock = FarmPaths(builder.repo).merge_lock()
    assert is_locked(lock)
    assert "was interrupted" not in builder.af("doctor", "--fix").stdout
    go.touch()
    wait_until(lambda: not is_locked(lock), timeout=300, what="git, which holds the lock")
    set_trap(builder.repo, "cat")
    done = merge(builder)
    assert done.returncode == 0, done.stderr
    assert_landed(builder)


def test_merges_at_once_all_land_while_a_person_commits(spawn: Spawn, repo: Path) -> None:
    builders = [spawn("--shell") for _ in range(5)]
    for number, builder in enumerate(builders):
        commit_files(builder.worktree, {f"work{number}/{name}": "x\n" for name in range(40)}, f"b{number}")

    def commit() -> int:
        """As a person does: a git that finds the index locked is called again."""
        landed = 0
        while landed < 4:
            done = subprocess.run(
                ["git", "commit", "-q", "--allow-empty", "-m", f"own {landed}"], cwd=repo, capture_output=True
            )
            landed += done.returncode == 0
        return landed

    with ThreadPoolExecutor(6) as pool:
        person = pool.submit(commit)
        merges = list(pool.map(merge, builders))
        assert person.result() == 4
    assert [done.returncode for done in merges] == [0] * 5, [done.stderr for done in merges]
    assert git(repo, "status", "--porcelain", "-uall") == ""
    subjects = git(repo, "log", "--format=%s", "--no-merges").splitlines()
    assert sorted(subjects) == sorted(
        ["first", *(f"b{n}" for n in range(5)), *(f"own {n}" for n in range(4))]
    )
    assert traces_in_git(repo) == []


def test_a_commit_made_while_the_merge_is_prepared_stays_and_the_merge_is_prepared_again(
    builder: Spawned, spawn: Spawn, tmp_path: Path
) -> None:
    twin = spawn("--shell")
    commit_files(twin.worktree, {"twin": "twin\n"})
    number = _number(builder, twin, tmp_path, "commit-tree")
    commit = f"  '{{real}}' -C '{builder.repo}' commit -q --allow-empty -m own"
    env = shims.make(tmp_path / "shim", "git", number, commit)
    done = builder.af("merge", builder.id, env=env)
    assert done.returncode == 0, done.stderr
    assert git(builder.repo, "log", "--first-parent", "-2", "--format=%s").splitlines()[1] == "own"
    assert git(builder.repo, "status", "--porcelain", "-uall") == ""


def begun_merge(builder: Spawned) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "agent_farm", "merge", builder.id]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, cwd=builder.repo, stdout=pipe, stderr=pipe, text=True)


def test_a_merge_waits_for_another_git_and_names_the_lock_of_one_that_was_killed(
    builder: Spawned, repo: Path
) -> None:
    lock = repo / ".git/index.lock"
    lock.touch()
    waiting = begun_merge(builder)
    wait_until(lambda: "agent-farm-merge.json" in traces_in_git(repo), timeout=300, what="the last step")
    lock.unlink()
    assert waiting.communicate(timeout=300)[0].startswith(f"{builder.id} landed on main")
    assert_landed(builder)


def test_a_merge_that_waits_for_another_says_so(builder: Spawned, repo: Path) -> None:
    with file_lock(FarmPaths(repo).merge_lock()):
        waiting = begun_merge(builder)
        assert waiting.stderr is not None
        assert waiting.stderr.readline() == f"Waiting for another merge into {repo}\n"
    assert waiting.communicate(timeout=300)[0].startswith(f"{builder.id} landed on main")


def test_a_kill_before_the_last_step_leaves_nothing_that_doctor_does_not_remove(
    builder: Spawned, repo: Path
) -> None:
    write_files(repo, {".git/info/exclude": "/agent-farm.toml\n/.agent-farm/\n/.builders/\n"})
    before = state(repo)
    assert killed(repo, "os.rename ('" + str(repo / ".git"), "merge", builder.id).returncode == -9
    assert list((repo / ".git").glob(".agent-farm-merge.json.*.tmp"))
    assert _signalled_in_the_check(builder, signal.SIGKILL)[0] == -9
    for trial in list((repo / ".agent-farm/trials").iterdir()):
        lock = FarmPaths(repo).locks / f"{trial.name}.lock"
        wait_until(lambda lock=lock: not is_locked(lock), what="the check, which holds the lock")
    found = builder.af("doctor", "--fix").stdout
    assert found.count("its writer was killed") == 1
    assert found.count("is from an interrupted merge or check") == 1
    assert not list((repo / ".git").glob(".agent-farm-merge.json.*.tmp"))
    assert not list((repo / ".agent-farm/trials").iterdir())
    assert len(git(repo, "worktree", "list").splitlines()) == 2
    (repo / "agent-farm.toml").unlink()
    assert state(repo) == before


def test_a_note_that_a_builder_writes_about_its_own_worktree_is_not_obeyed(
    builder: Spawned, repo: Path, tmp_path: Path
) -> None:
    """Its git directory may be made to name any place; files would be written there."""
    outside = tmp_path / "outside"
    outside.mkdir()
    admin = repo / ".git/worktrees" / builder.worktree.name
    commits = [builder.git("rev-parse", name) for name in ("HEAD", "HEAD~1")]
    note = {"version": 1, "mark": "m", "what": "w", "branch": "b", "before": commits[0], "after": commits[1]}
    (admin / "agent-farm-merge.json").write_text(json.dumps(note))
    for place in (builder.worktree, outside):
        (admin / "gitdir").write_text(f"{place}/.git\n")
        builder.af("doctor", "--fix")
        assert list(outside.iterdir()) == []
        assert (admin / "agent-farm-merge.json").exists()
