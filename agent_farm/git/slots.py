"""Detached worktrees made ahead of need, and what turns one into a builder's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agent_farm.disk import file_lock
from agent_farm.git.command import run_git
from agent_farm.git.repository import Repository

_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false")


def add_slot(repository: Repository, path: Path, commit: str, *, lock_path: Path) -> None:
    """A detached worktree with all files of `commit`, whose first `git status` has nothing to read again."""
    with file_lock(lock_path, inherit=True) as lock:
        run_git(
            repository.root,
            *("worktree", "add", "--quiet", "--detach", "--no-checkout", "--", path, commit),
            pass_fds=(lock,),
        )
    run_git(path, *_QUIET, "read-tree", "-m", "-u", "HEAD")
    run_git(path, *_QUIET, "update-index", "-q", "--refresh")


def update_slot(path: Path, commit: str) -> None:
    """Bring an untouched slot to another commit; only the files that differ are written."""
    run_git(path, *_QUIET, "checkout", "--quiet", "--detach", commit)


def move_slot(repository: Repository, slot: Path, target: Path, branch: str, *, fds: Sequence[int]) -> None:
    """The slot at its new place, on a new branch that begins at the slot's commit."""
    run_git(repository.root, "worktree", "move", slot, target, pass_fds=fds)
    run_git(target, *_QUIET, "switch", "--quiet", "--no-track", "-c", branch, pass_fds=fds)


def repair_worktree(repository: Repository, path: Path) -> None:
    """Have git and a directory that was moved name each other again."""
    run_git(repository.root, "worktree", "repair", path)
