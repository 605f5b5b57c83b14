"""Takes linked worktrees and branches away, unless somebody has worked there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from agent_farm.errors import AgentFarmError
from agent_farm.git.git_process import GitError, ask_git, run_git
from agent_farm.git.half_made import own_content
from agent_farm.git.registrations import registration_at
from agent_farm.git.repository import Repository
from agent_farm.git.sparse import forget_gone
from agent_farm.git.worktrees import branch_checked_out_at
from agent_farm.launch import as_command


def drop_worktree(
    repository: Repository, path: Path, commit: str, *, delete: Callable[[Path], object] = shutil.rmtree
) -> bool:
    """Delete the worktree and git's record of it, unless somebody worked there: `commit` does not explain it.

    It is first moved aside; files written between the check and the move are found there, and it is moved
    back.
    """
    if os.path.lexists(path):
        if own_content(repository, path, commit):
            return False
        aside = _aside(path)
        os.rename(path, aside)
        if own_content(repository, aside, commit):
            bring_back_dropped(path)
            return False
        delete(aside)
    drop_registration(repository, path)
    return True


def bring_back_dropped(path: Path) -> None:
    """Undo a move aside that a kill left unfinished."""
    if _aside(path).is_dir() and not os.path.lexists(path):
        os.rename(_aside(path), path)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.undone")


def drop_registration(repository: Repository, path: Path) -> None:
    """Forget the worktree that was at `path`, whose directory is gone; others stay."""
    if os.path.lexists(path):
        raise AgentFarmError(
            f"{path} still exists", why="git forgets a worktree only once its directory is gone."
        )
    one = registration_at(repository.common_dir, path)
    if one is None:
        return
    if one.locked is not None:
        raise AgentFarmError(
            f"The worktree {path} is locked",
            why=one.locked or "git worktree lock was called on it, without a reason.",
            hint=as_command("git", "-C", repository.root, "worktree", "unlock", path),
        )
    shutil.rmtree(one.admin)
    with suppress(OSError):
        one.admin.parent.rmdir()  # git, too, removes it with the last worktree
    forget_gone(repository)


def delete_branch(repository: Repository, name: str, expected_commit: str) -> None:
    """Delete the branch if it is still at `expected_commit` and checked out nowhere."""
    elsewhere = branch_checked_out_at(repository, name)
    if elsewhere is not None:
        raise AgentFarmError(f"The branch {name} is in use", why=f"It is checked out in {elsewhere}.")
    try:
        run_git(repository.root, "update-ref", "-d", f"refs/heads/{name}", expected_commit)
    except GitError as error:
        raise AgentFarmError(
            f"The branch {name} was not deleted",
            why=f"It is no longer at {expected_commit[:12]}, or is locked. {error.why or ''}".strip(),
            hint="af status",
        ) from error
    forget_settings(repository, name)


def forget_settings(repository: Repository, branch: str) -> None:
    """Forget what `git push -u` wrote about it; git fails if there is nothing, which is fine."""
    ask_git(repository.root, "config", "--local", "--remove-section", f"branch.{branch}")
