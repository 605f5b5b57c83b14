"""A worktree comes whole or not at all, and goes without taking anything along."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_farm.disk import file_lock, is_locked
from agent_farm.errors import AgentFarmError
from agent_farm.git.git_process import GitError
from agent_farm.git.repository import find_repository
from agent_farm.git.worktree_removal import delete_branch, drop_registration, drop_worktree
from agent_farm.git.worktrees import add_worktree, belongs_here, branch_checked_out_at, list_worktrees
from tests.gitrepo import commit_files, git, make_repo
from tests.waiting import wait_until

ADD = """
import sys
from pathlib import Path
from agent_farm.disk import file_lock
from agent_farm.git.repository import find_repository
from agent_farm.git.worktrees import add_worktree
root, name = Path(sys.argv[1]), sys.argv[2]
repository = find_repository(root)
with file_lock(root / ".agent-farm" / f"{name}.lock", inherit=True) as lock:
    add_worktree(repository, root / ".builders" / name, f"builder/{name}", repository.head().commit,
                 lock_path=root / ".agent-farm/worktrees.lock", builder_lock_fd=lock)
"""


def add(
    repo: Path,
    name: str = "x",
    *,
    new_branch: bool = True,
    branch: str | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Path:
    repository = find_repository(repo)
    path = repository.root / ".builders" / name
    with file_lock(repo / ".agent-farm" / f"{name}.lock", inherit=True) as lock:
        add_worktree(
            repository,
            path,
            branch or f"builder/{name}",
            repository.head().commit,
            lock_path=repo / ".agent-farm/worktrees.lock",
            builder_lock_fd=lock,
            new_branch=new_branch,
            meanwhile=meanwhile,
        )
    return path


def traces(repo: Path) -> tuple[list[str], list[str], list[str]]:
    """Branches, registered worktrees and builders' directories."""
    admin = repo / ".git/worktrees"
    here = repo / ".builders"
    return (
        git(repo, "branch", "--format=%(refname:short)").splitlines(),
        sorted(os.listdir(admin)) if admin.exists() else [],
        sorted(os.listdir(here)) if here.exists() else [],
    )


@pytest.mark.parametrize("name", ["plain", "with space", "ünï", "#(touch x);", "-rf", "two\nlines", "$HOME"])
def test_a_fresh_worktree_is_whole_and_clean(tmp_path: Path, name: str) -> None:
    repo = make_repo(tmp_path / name, {"a": "a\n", "dir/b": "b\n", "-x": "x\n"})
    path = add(repo)
    assert git(path, "status", "--porcelain", "--ignored") == ""
    assert git(path, "symbolic-ref", "HEAD") == "refs/heads/builder/x"
    assert (path / "dir/b").read_text() == "b\n"
    assert git(repo, "config", "--local", "--get-regexp", "^branch", check=False) == ""


def test_hooks_and_auto_set_up_of_the_repository_stay_out(repo: Path) -> None:
    hook = repo / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    git(repo, "config", "branch.autoSetupMerge", "always")
    git(repo, "config", "submodule.recurse", "true")
    assert not (add(repo) / "ran").exists()


def test_an_existing_branch_is_gone_on_with(repo: Path) -> None:
    git(repo, "checkout", "-q", "-b", "builder/old")
    commit_files(repo, {"old": "x"})
    git(repo, "checkout", "-q", "main")
    assert (add(repo, "x", new_branch=False, branch="builder/old") / "old").exists()


@pytest.mark.slow
def test_forty_at_a_time(repo: Path) -> None:
    (repo / ".agent-farm").mkdir()
    running = [
        subprocess.Popen([sys.executable, "-c", ADD, str(repo), f"b{number}"], stderr=subprocess.PIPE)
        for number in range(40)
    ]
    errors = [process.communicate(timeout=120)[1] for process in running]
    assert [process.returncode for process in running] == [0] * 40, errors
    names = sorted(f"b{number}" for number in range(40))
    branches, admin, directories = traces(repo)
    assert admin == directories == names
    assert branches == [f"builder/{name}" for name in names] + ["main"]
    for name in names:
        assert git(repo / ".builders" / name, "status", "--porcelain") == ""


def test_a_taken_branch_is_refused_and_kept(repo: Path) -> None:
    git(repo, "branch", "builder/x")
    before = traces(repo)
    with pytest.raises(AgentFarmError, match="already exists"):
        add(repo)
    assert traces(repo) == before


def test_a_branch_checked_out_elsewhere_is_refused_and_kept(repo: Path) -> None:
    before = traces(repo)
    with pytest.raises(GitError):
        add(repo, "x", new_branch=False, branch="main")
    assert traces(repo) == before


def test_a_taken_directory_is_refused_and_kept(repo: Path) -> None:
    (repo / ".builders/x").mkdir(parents=True)
    (repo / ".builders/x/mine").write_text("mine")
    before = traces(repo)
    with pytest.raises(AgentFarmError, match="already exists"):
        add(repo)
    assert traces(repo) == before
    assert (repo / ".builders/x/mine").read_text() == "mine"


def test_a_checkout_that_fails_leaves_nothing(repo: Path) -> None:
    commit_files(repo, {".gitattributes": "*.bad filter=bad\n", "a.bad": "x\n"})
    git(repo, "config", "filter.bad.smudge", "false")
    git(repo, "config", "filter.bad.required", "true")
    before = traces(repo)
    with pytest.raises(GitError):
        add(repo)
    assert traces(repo) == before


def _wait_for_gate(repo: Path) -> tuple[Path, Path]:
    """A file whose filter says that it has begun, and waits for somebody to open the gate."""
    begun, gate = repo.parent / "begun", repo.parent / "gate"
    os.mkfifo(gate)
    commit_files(repo, {".gitattributes": "slow filter=slow\n", "slow": "x\n"})
    git(repo, "config", "filter.slow.smudge", f"touch {begun}; cat {gate}")
    return begun, gate


def test_something_else_is_done_while_git_checks_out(repo: Path) -> None:
    begun, gate = _wait_for_gate(repo)

    def meanwhile() -> None:
        wait_until(begun.exists, what="the filter")
        gate.write_text("open\n")

    assert (add(repo, meanwhile=meanwhile) / "slow").read_text() == "open\n"


def test_if_that_fails_git_is_ended_and_nothing_is_left(repo: Path) -> None:
    """The gate stays closed: git would wait for it."""
    begun, gate = _wait_for_gate(repo)
    before = traces(repo)

    def meanwhile() -> None:
        wait_until(begun.exists, what="the filter")
        raise AgentFarmError("The disk is full")

    with pytest.raises(AgentFarmError, match="disk is full"):
        add(repo, meanwhile=meanwhile)
    assert traces(repo) == before
    gate.write_text("let the filter go\n")


def test_a_directory_deleted_by_hand_does_not_block_its_name(repo: Path) -> None:
    path = add(repo)
    git(repo, "worktree", "add", "-q", "--detach", ".builders/other")
    subprocess.run(["rm", "-rf", str(path), str(repo / ".builders/other")], check=True)
    assert (add(repo, new_branch=False) / "README.md").exists()
    assert len(list_worktrees(find_repository(repo))) == 3


def test_git_itself_holds_the_builders_lock(repo: Path) -> None:
    """An orphaned git, here one that a filter keeps waiting, is seen by the lock."""
    begun, gate = _wait_for_gate(repo)
    (repo / ".agent-farm").mkdir()
    lock = repo / ".agent-farm/x.lock"
    process = subprocess.Popen([sys.executable, "-c", ADD, str(repo), "x"])
    wait_until(begun.exists, what="the filter")
    assert not is_locked(repo / ".agent-farm/worktrees.lock")
    process.kill()
    process.wait()
    assert is_locked(lock)
    gate.write_text("let go\n")
    wait_until(lambda: not is_locked(lock), what="the end of git")


def test_worktrees_are_listed_with_what_is_special(repo: Path) -> None:
    path = add(repo, "a b\nc", branch="builder/x")
    git(repo, "worktree", "add", "-q", "--detach", ".builders/d")
    git(repo, "worktree", "lock", "--reason", "why\nnot", ".builders/d")
    git(repo, "worktree", "add", "-q", ".builders/e")
    subprocess.run(["rm", "-rf", str(repo / ".builders/e")], check=True)
    main, x, d, e = list_worktrees(find_repository(repo))
    assert (main.path, main.branch) == (repo, "main")
    assert (x.path, x.branch, x.locked_reason) == (path, "builder/x", None)
    assert (d.branch, d.locked_reason) == (None, "why\nnot")
    assert (e.path, e.branch) == (repo / ".builders/e", "e")


def test_a_listing_hangs_on_nothing_that_was_planted(repo: Path) -> None:
    path = add(repo)
    (repo / ".git/worktrees/trap").mkdir()
    os.mkfifo(repo / ".git/worktrees/trap/gitdir")
    assert [tree.path for tree in list_worktrees(find_repository(repo))] == [repo, path]


def test_a_branch_in_use_is_found_during_a_rebase_too(repo: Path) -> None:
    path = add(repo)
    repository = find_repository(repo)
    assert branch_checked_out_at(repository, "builder/x") == path
    commit_files(path, {"README.md": "x\n"})
    commit_files(repo, {"README.md": "y\n"})
    git(path, "rebase", "main", check=False)
    assert branch_checked_out_at(repository, "builder/x") == path
    assert branch_checked_out_at(repository, "nope") is None


def test_ownership_needs_both_sides(repo: Path, tmp_path: Path) -> None:
    path, other = add(repo), make_repo(tmp_path / "other")
    repository = find_repository(repo)
    assert belongs_here(repository, path)
    assert not belongs_here(find_repository(other), path)
    assert not belongs_here(repository, repo)
    subprocess.run(["cp", "-a", str(path), str(repo / ".builders/copy")], check=True)
    assert not belongs_here(repository, repo / ".builders/copy")
    (path / ".git").write_text(f"gitdir: {other / '.git'}\n")
    assert not belongs_here(repository, path)


def test_a_worktree_whose_directory_is_gone_is_dropped_alone(repo: Path) -> None:
    path, other = add(repo), add(repo, "other")
    subprocess.run(["rm", "-rf", str(path), str(other)], check=True)
    drop_registration(find_repository(repo), path)
    assert traces(repo)[1] == ["other"]


def test_what_is_there_or_locked_is_not_dropped(repo: Path) -> None:
    locked, there = add(repo, "locked"), add(repo, "there")
    git(repo, "worktree", "lock", "--reason", "mine", str(locked))
    subprocess.run(["rm", "-rf", str(locked)], check=True)
    before = traces(repo)
    with pytest.raises(AgentFarmError, match="locked") as caught:
        drop_registration(find_repository(repo), locked)
    assert caught.value.why == "mine"
    with pytest.raises(AgentFarmError, match="still exists"):
        drop_registration(find_repository(repo), there)
    assert traces(repo) == before


def test_a_branch_is_deleted_only_where_it_was_left(repo: Path) -> None:
    repository = find_repository(repo)
    path = add(repo)
    at = repository.head().commit
    with pytest.raises(AgentFarmError, match="in use"):
        delete_branch(repository, "builder/x", at)
    tip = commit_files(path, {"a": "a"})
    assert drop_worktree(repository, path, tip)
    with pytest.raises(AgentFarmError, match="not deleted"):
        delete_branch(repository, "builder/x", at)
    git(repo, "config", "branch.builder/x.remote", "origin")
    delete_branch(repository, "builder/x", tip)
    assert repository.branch_commit("builder/x") is None
    assert git(repo, "config", "--get-regexp", "^branch", check=False) == ""
