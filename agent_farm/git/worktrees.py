"""Linked worktrees: made whole or not at all, removed by moving them aside."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent_farm.disk import file_lock, make_directory, read_plain
from agent_farm.errors import AgentFarmError, NotFound
from agent_farm.git.builder_tree import WorktreeMismatch, linked_tree
from agent_farm.git.command import GitError, ask_git, run_git
from agent_farm.git.finding import linked_git_dir
from agent_farm.git.repository import Repository
from agent_farm.git.slots import check_out

_LONGEST = 16_384  # bytes of a file that holds a name


class BranchTaken(AgentFarmError):
    """Somebody made a branch of that name first: it is theirs."""


@dataclass(frozen=True, slots=True)
class Worktree:
    """One line of `git worktree list`; `locked_reason` is "" for a lock without a reason."""

    path: Path
    commit: str | None
    branch: str | None
    detached: bool = False
    bare: bool = False
    locked_reason: str | None = None
    prunable: str | None = None


def add_worktree(
    repository: Repository,
    path: Path,
    branch: str,
    base_commit: str,
    *,
    lock_path: Path,
    builder_lock_fd: int,
    new_branch: bool = True,
    upstream: str | None = None,
) -> None:
    """A worktree of `branch` with all its files, or an error and no trace of it.

    A new branch follows `upstream`, the full name of a remote-tracking branch.

    The admin part runs under the repository's lock (40 at a time would fail on git's own locks), the
    checkout outside it. All git children hold `builder_lock_fd`: a git that outlives us is seen by its lock.
    """
    made_branch = made_worktree = False
    try:
        with file_lock(lock_path, inherit=True) as lock_fd:
            held = (lock_fd, builder_lock_fd)
            if new_branch:
                _create_branch(repository, branch, base_commit, held)
                made_branch = True
            require_free(path)
            make_directory(path.parent, mode=0o755)  # git would make it for others to write, by some umasks
            made_worktree = True
            _register(repository, path, branch, held)
            if new_branch and upstream:
                # A ref that no remote's refspec covers cannot be followed; the branch works without.
                ask_git(repository.root, "branch", "--quiet", f"--set-upstream-to={upstream}", branch)
        check_out(repository, path, fds=(builder_lock_fd,))
    except BaseException:
        if made_worktree:
            _undo_worktree(repository, path)
        if made_branch:
            ask_git(repository.root, "update-ref", "-d", f"refs/heads/{branch}", base_commit)
            if upstream:
                _forget_settings(repository, branch)
        raise


def require_free(path: Path) -> None:
    """Nothing of anybody's may be where a worktree goes; an empty directory may."""
    if os.path.lexists(path) and not (path.is_dir() and not path.is_symlink() and not any(path.iterdir())):
        raise AgentFarmError(f"{path} already exists", hint="af doctor")


def list_worktrees(repository: Repository) -> list[Worktree]:
    """All of them, the main checkout first."""
    output = run_git(repository.root, "worktree", "list", "--porcelain", "-z")
    return [_parsed(block.split("\0")) for block in output.split("\0\0") if block]


def find_worktree(repository: Repository, path: Path) -> Worktree | None:
    """The worktree registered at `path`, also when the directory itself is gone."""
    wanted = os.path.realpath(path)
    found = (tree for tree in list_worktrees(repository) if os.path.realpath(tree.path) == wanted)
    return next(found, None)


def branch_checked_out_at(repository: Repository, branch: str) -> Path | None:
    """The worktree that has the branch checked out, or is rebasing or bisecting it."""
    for tree in list_worktrees(repository):
        if tree.branch == branch or (tree.detached and branch in _branches_in_work(tree.path)):
            return tree.path
    return None


def belongs_here(repository: Repository, path: Path) -> bool:
    """Whether `path` is a linked worktree of this repository: both name each other."""
    try:
        linked_tree(repository, path)
    except WorktreeMismatch:
        return False
    return True


def admin_directory(path: Path) -> Path | None:
    """A linked worktree's private git directory (`<common>/worktrees/<name>`), None when it has none."""
    admin = linked_git_dir(path / ".git")
    return admin if admin is not None and admin.is_dir() else None


def remove_worktree(repository: Repository, path: Path, *, trash: Path) -> Path:
    """Move the worktree to `<trash>/worktree` and its git directory to `<trash>/admin`; returns `trash`.

    Nothing is deleted: index, reflog and the git directories of submodules come along. `trash` has to be on
    the worktree's filesystem. The branch stays. A locked worktree and another repository's are refused.
    Called again after a crash, it does what was left to do.
    """
    _require_removable(repository, path)
    admin = admin_directory(path if os.path.lexists(path) else trash / "worktree")
    make_directory(trash)
    if os.path.lexists(path):
        _move_directory(path, trash / "worktree")
    if admin is not None:
        _move_admin(admin, trash / "admin")
    else:
        drop_admin_entry(repository, path)
    return trash


def drop_admin_entry(repository: Repository, path: Path) -> None:
    """Forget the worktree once registered at `path`, whose directory is gone; others stay as they are."""
    if os.path.lexists(path):
        raise AgentFarmError(f"{path} still exists", why="Its registration is dropped only when it is gone.")
    if find_worktree(repository, path) is not None:
        run_git(repository.root, "worktree", "remove", "--force", "--", path)


def delete_branch(repository: Repository, name: str, expected_commit: str) -> None:
    """Delete the branch if it still is at `expected_commit` and is checked out nowhere."""
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
    _forget_settings(repository, name)


def _forget_settings(repository: Repository, branch: str) -> None:
    """What `git push -u` wrote about it; without such a section git fails, and that is fine."""
    ask_git(repository.root, "config", "--local", "--remove-section", f"branch.{branch}")


def _create_branch(repository: Repository, branch: str, commit: str, fds: Sequence[int]) -> None:
    """Unlike `worktree add -b`, this tells a branch that we made from one that was there."""
    message = f"branch: Created from {commit}"
    name = f"refs/heads/{branch}"
    try:
        run_git(
            repository.root,
            "update-ref",
            "--create-reflog",
            "-m",
            message,
            name,
            commit,
            "0" * 40,
            pass_fds=fds,
        )
    except GitError as error:
        if repository.branch_commit(branch) is not None:
            raise BranchTaken(f"The branch {branch} already exists") from error
        raise


def _register(repository: Repository, path: Path, branch: str, fds: Sequence[int]) -> None:
    arguments = ("worktree", "add", "--quiet", "--no-checkout", "--", path, branch)
    try:
        run_git(repository.root, *arguments, pass_fds=fds)
    except GitError as error:
        if "already registered worktree" not in error.stderr or "locked" in error.stderr:
            raise
        drop_admin_entry(repository, path)  # somebody deleted the directory by hand
        run_git(repository.root, *arguments, pass_fds=fds)


def _undo_worktree(repository: Repository, path: Path) -> None:
    """Best effort: the error that led here is the one to show."""
    import shutil  # only a failure pays for it

    with suppress(AgentFarmError, OSError):
        admin = admin_directory(path)
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        if admin is not None:
            shutil.rmtree(admin, ignore_errors=True)
        drop_admin_entry(repository, path)


def _parsed(lines: Sequence[str]) -> Worktree:
    facts = {name: value for name, _, value in (line.partition(" ") for line in lines if line)}
    branch = facts.get("branch")
    return Worktree(
        path=Path(facts["worktree"]),
        commit=facts.get("HEAD"),
        branch=branch.removeprefix("refs/heads/") if branch else None,
        detached="detached" in facts,
        bare="bare" in facts,
        locked_reason=facts.get("locked"),
        prunable=facts.get("prunable"),
    )


def _branches_in_work(path: Path) -> set[str]:
    """Branches a detached worktree will return to: of a rebase or a bisection under way."""
    admin = admin_directory(path) or path / ".git"
    names = set()
    for file in ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"):
        with suppress(OSError):
            names.add(
                os.fsdecode(read_plain(admin / file, limit=_LONGEST)).strip().removeprefix("refs/heads/")
            )
    return names


def _require_removable(repository: Repository, path: Path) -> None:
    if os.path.realpath(path) == os.path.realpath(repository.root):
        raise AgentFarmError(f"{path} is the main checkout", why="It is never removed.")
    tree = find_worktree(repository, path)
    if tree is None or (os.path.lexists(path) and not belongs_here(repository, path)):
        raise NotFound(f"{path} is not a worktree of {repository.root}", hint="git worktree list")
    if tree.locked_reason is not None:
        raise AgentFarmError(
            f"The worktree {path} is locked",
            why=tree.locked_reason or "git worktree lock was called on it, without a reason.",
            hint=f"git worktree unlock {path}",
        )


def _move_directory(path: Path, target: Path) -> None:
    with suppress(OSError):
        path.chmod(path.stat().st_mode | 0o700)  # a directory moves only if it may be written
    try:
        path.rename(target)
    except OSError as error:
        raise AgentFarmError(f"{path} cannot be moved to {target}", why=error.strerror) from error


def _move_admin(admin: Path, target: Path) -> None:
    import shutil  # not on the way of a spawn

    try:
        shutil.move(admin, target)  # copies where git's directory is on another filesystem
    except OSError as error:
        raise AgentFarmError(f"{admin} cannot be moved to {target}", why=error.strerror) from error
    with suppress(OSError):
        admin.parent.rmdir()  # git, too, drops it with the last worktree
