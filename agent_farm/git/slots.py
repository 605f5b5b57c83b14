"""Files for new worktrees, some of which are made ahead of need."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agent_farm.disk import file_lock
from agent_farm.git.builder_tree import linked_tree
from agent_farm.git.command import git_environment, run_git
from agent_farm.git.repository import Repository


def add_slot(repository: Repository, path: Path, commit: str, *, lock_path: Path) -> None:
    """A detached worktree with all files of `commit`, whose first `git status` has nothing to read again."""
    with file_lock(lock_path, inherit=True) as lock:
        run_git(
            repository.root,
            *("worktree", "add", "--quiet", "--detach", "--no-checkout", "--", path, commit),
            pass_fds=(lock,),
        )
    check_out(repository, path)
    linked_tree(repository, path).run("update-index", "-q", "--refresh")


def update_slot(repository: Repository, path: Path, commit: str) -> None:
    """Bring an untouched slot to another commit; only the files that differ are written."""
    tree = linked_tree(repository, path)
    tree.run("checkout", "--quiet", "--detach", commit, base=git_environment())


def check_out(repository: Repository, path: Path, *, fds: Sequence[int] = ()) -> None:
    """All files of a worktree that has none, and an index that knows them.

    No hook runs: that is what `[worktree] setup` is for. Filters get the whole environment, since those of
    git-lfs fetch; nobody has worked here yet.
    """
    tree = linked_tree(repository, path)
    tree.run("read-tree", "-m", "-u", "HEAD", base=git_environment(), pass_fds=fds)


def move_slot(repository: Repository, slot: Path, target: Path, branch: str, *, fds: Sequence[int]) -> None:
    """The slot at its new place, on a new branch that begins at the slot's commit."""
    run_git(repository.root, "worktree", "move", slot, target, pass_fds=fds)
    linked_tree(repository, target).run("switch", "--quiet", "--no-track", "-c", branch, pass_fds=fds)


def repair_worktree(repository: Repository, path: Path) -> None:
    """Have git and a directory that was moved name each other again."""
    run_git(repository.root, "worktree", "repair", path)
