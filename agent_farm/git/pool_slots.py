"""Worktrees made in advance: detached, until a builder's branch begins in one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from agent_farm.disk import file_lock, make_directory, replace_file
from agent_farm.errors import AgentFarmError
from agent_farm.git.checkout import linked_tree
from agent_farm.git.git_process import Options, git_environment, run_git
from agent_farm.git.registrations import connect, line_of
from agent_farm.git.repository import Repository
from agent_farm.git.sparse import narrow
from agent_farm.git.worktrees import check_out, counted, create_branch
from agent_farm.pace import Step


def add_slot(
    repository: Repository,
    path: Path,
    commit: str,
    *,
    lock_path: Path,
    sparse: Sequence[str] = (),
    step: Step = lambda what, done, total: None,
) -> None:
    """Create a detached worktree with all files of `commit`, and an index that knows their times."""
    with file_lock(lock_path, inherit=True) as lock:
        detached = ("worktree", "add", "--quiet", "--detach", "--no-checkout")
        run_git(repository.root, *detached, "--", path, commit, pass_fds=(lock,))
        if sparse:
            narrow(repository, linked_tree(repository, path), sparse, (lock,))
    check_out(repository, path, commit, step=step)
    linked_tree(repository, path).run("update-index", "-q", "--refresh")


def update_slot(
    repository: Repository,
    path: Path,
    commit: str,
    *,
    fds: Sequence[int] = (),
    step: Step = lambda what, done, total: None,
) -> None:
    """Switch an untouched slot to another commit; only files that differ are written."""
    tree = linked_tree(repository, path)
    options = Options(base=git_environment(), pass_fds=fds) | counted(step)
    tree.run("checkout", "--quiet", "--progress", "--detach", commit, **options)


def move_slot(repository: Repository, slot: Path, target: Path) -> None:
    """Move a slot. `git worktree move` refuses every worktree with submodules; here only one that has
    them checked out is refused, because they name their place by relative paths."""
    tree = linked_tree(repository, slot)
    if (tree.git_dir / "modules").exists():
        raise AgentFarmError(f"{slot} has submodules", why="The worktree would lose them where it goes.")
    make_directory(target.parent, mode=0o755)
    os.rename(slot, target)  # replaces an empty directory, and nothing else
    connect(tree.git_dir, target)


def put_on_new_branch(
    repository: Repository, path: Path, branch: str, commit: str, *, fds: Sequence[int]
) -> None:
    """Make a detached worktree look as if it had been created on the branch, which begins here."""
    create_branch(repository, branch, commit, fds)
    tree = linked_tree(repository, path)
    tree.run("symbolic-ref", "HEAD", f"refs/heads/{branch}", pass_fds=fds)
    made, _, _ = line_of(tree.common_dir / "logs/refs/heads" / branch).partition("\t")
    if made:  # otherwise reflogs are not kept in files
        replace_file(tree.git_dir / "logs/HEAD", f"{made}\n", mode=0o644)
