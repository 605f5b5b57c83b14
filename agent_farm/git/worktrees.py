"""Linked worktrees: made whole or not at all, listed, and dropped with their registration."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from agent_farm.disk import file_lock, make_directory, replace_file
from agent_farm.errors import AgentFarmError
from agent_farm.git.checkout import Checkout, WorktreeMismatch, checkout_at, linked_tree, main_checkout
from agent_farm.git.git_process import GitError, ask_git, git_environment, run_git
from agent_farm.git.half_made import own_content
from agent_farm.git.registrations import branch_in, connect, line_of, registration_at, registrations
from agent_farm.git.repository import Repository
from agent_farm.git.sparse import forget_gone, narrow
from agent_farm.launch import as_command
from agent_farm.paths import WORKTREES_NAME

# git knows them without their being there, by the length of its names.
_EMPTY_TREES = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}


class BranchTaken(AgentFarmError):
    """Somebody made a branch of that name first: it is theirs."""


class Worktree(Struct, frozen=True):
    """A checkout that git knows. `locked_reason` is "" for a lock without a reason."""

    path: Path
    git_dir: Path
    branch: str | None
    locked_reason: str | None = None


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
    sparse: Sequence[str] = (),
) -> None:
    """A worktree of `branch` with all its files, or of the directories in `sparse`; else no trace of it.

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
            if sparse:
                narrow(repository, linked_tree(repository, path), sparse, held)
            if new_branch and upstream:
                # A ref that no remote's refspec covers cannot be followed; the branch works without.
                ask_git(repository.root, "branch", "--quiet", f"--set-upstream-to={upstream}", branch)
        _check_out(repository, path, base_commit, fds=(builder_lock_fd,))
    except BaseException:
        is_gone = not made_worktree
        if made_worktree:
            with suppress(AgentFarmError, OSError):  # the error that led here is the one to show
                is_gone = drop_worktree(repository, path, base_commit)
        if made_branch and is_gone:
            ask_git(repository.root, "update-ref", "-d", f"refs/heads/{branch}", base_commit)
            if upstream:
                forget_settings(repository, branch)
        raise


def _check_out(repository: Repository, path: Path, commit: str, *, fds: Sequence[int] = ()) -> None:
    """All files of a worktree that has none, and an index that knows them.

    As a change from nothing to HEAD: what somebody staged here a moment too early stays. No hook runs: that
    is what `[worktree] setup` is for. Filters get the whole environment, since those of git-lfs fetch.
    """
    tree = linked_tree(repository, path)
    nothing = _EMPTY_TREES[len(commit)]
    tree.run("read-tree", "-m", "-u", nothing, "HEAD", base=git_environment(), pass_fds=fds)


def add_slot(
    repository: Repository, path: Path, commit: str, *, lock_path: Path, sparse: Sequence[str] = ()
) -> None:
    """A detached worktree with all files of `commit`, whose first `git status` has nothing to read again."""
    with file_lock(lock_path, inherit=True) as lock:
        detached = ("worktree", "add", "--quiet", "--detach", "--no-checkout")
        run_git(repository.root, *detached, "--", path, commit, pass_fds=(lock,))
        if sparse:
            narrow(repository, linked_tree(repository, path), sparse, (lock,))
    _check_out(repository, path, commit)
    linked_tree(repository, path).run("update-index", "-q", "--refresh")


def update_slot(repository: Repository, path: Path, commit: str, *, fds: Sequence[int] = ()) -> None:
    """Bring an untouched slot to another commit; only the files that differ are written."""
    tree = linked_tree(repository, path)
    tree.run("checkout", "--quiet", "--detach", commit, base=git_environment(), pass_fds=fds)


def move_slot(repository: Repository, slot: Path, target: Path) -> None:
    """The slot at its new place. `git worktree move` refuses one that names submodules at all; here only one
    is refused that has them checked out: they say by relative paths where they belong."""
    tree = linked_tree(repository, slot)
    if (tree.git_dir / "modules").exists():
        raise AgentFarmError(f"{slot} has submodules", why="The worktree would lose them where it goes.")
    make_directory(target.parent, mode=0o755)
    os.rename(slot, target)  # which replaces an empty directory, and nothing else
    connect(tree.git_dir, target)


def put_on_new_branch(
    repository: Repository, path: Path, branch: str, commit: str, *, fds: Sequence[int]
) -> None:
    """A detached worktree as if it had been made on the branch, which begins here, at its commit."""
    _create_branch(repository, branch, commit, fds)
    tree = linked_tree(repository, path)
    tree.run("symbolic-ref", "HEAD", f"refs/heads/{branch}", pass_fds=fds)
    made, _, _ = line_of(tree.common_dir / "logs/refs/heads" / branch).partition("\t")
    if made:  # else reflogs are kept elsewhere
        replace_file(tree.git_dir / "logs/HEAD", f"{made}\n", mode=0o644)


def move_worktree(repository: Repository, path: Path, target: Path) -> None:
    """With everything in it; git refuses a locked one, and one with submodules."""
    run_git(repository.root, "worktree", "move", path, target)


def require_free(path: Path) -> None:
    """Nothing of anybody's may be where a worktree goes; an empty directory may."""
    if os.path.lexists(path) and not (path.is_dir() and not path.is_symlink() and not any(path.iterdir())):
        raise AgentFarmError(f"{path} already exists", hint="af doctor")


def list_worktrees(repository: Repository) -> list[Worktree]:
    """All of them, the main checkout first."""
    main = repository.git_dir
    linked = (one for one in registrations(repository.common_dir) if one.admin != main)
    return [
        Worktree(repository.root, main, _branch(repository, main)),
        *(Worktree(one.tree, one.admin, _branch(repository, one.admin), one.locked) for one in linked),
    ]


def _branch(repository: Repository, git_dir: Path) -> str | None:
    branch = branch_in(git_dir)
    if branch != ".invalid":
        return branch
    own = (f"--git-dir={git_dir}", "symbolic-ref", "--quiet", "--short", "HEAD")  # kept in no plain file
    return run_git(repository.root, *own, ok=(0, 1)).strip() or None


def every_checkout(repository: Repository) -> Iterator[Checkout]:
    """Those that a person works in: the main checkout, and linked worktrees that are this repository's."""
    yield main_checkout(repository)
    for tree in list_worktrees(repository)[1:]:
        if not tree.path.is_relative_to(repository.root / WORKTREES_NAME) and tree.path.is_dir():
            with suppress(WorktreeMismatch):
                yield checkout_at(repository, tree.path)


def branch_checked_out_at(repository: Repository, branch: str) -> Path | None:
    """The worktree that has the branch checked out, or is rebasing or bisecting it."""
    for tree in list_worktrees(repository):
        if tree.branch == branch or (tree.branch is None and branch in _branches_in_work(tree.git_dir)):
            return tree.path
    return None


def belongs_here(repository: Repository, path: Path) -> bool:
    """Whether `path` is a linked worktree of this repository: both name each other."""
    try:
        linked_tree(repository, path)
    except WorktreeMismatch:
        return False
    return True


def drop_worktree(
    repository: Repository, path: Path, commit: str, *, delete: Callable[[Path], object] = shutil.rmtree
) -> bool:
    """Delete and forget it, unless somebody has worked there: it holds what `commit` does not explain.

    What is written after the look is found where nobody else does, and brought back.
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
    """Also after a kill between the two."""
    if _aside(path).is_dir() and not os.path.lexists(path):
        os.rename(_aside(path), path)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.undone")


def drop_registration(repository: Repository, path: Path) -> None:
    """Forget the worktree once at `path`, whose directory is gone; others stay as they are."""
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
        one.admin.parent.rmdir()  # git, too, drops it with the last worktree
    forget_gone(repository)


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
    forget_settings(repository, name)


def forget_settings(repository: Repository, branch: str) -> None:
    """What `git push -u` wrote about it; without such a section git fails, and that is fine."""
    ask_git(repository.root, "config", "--local", "--remove-section", f"branch.{branch}")


def _create_branch(repository: Repository, branch: str, commit: str, fds: Sequence[int]) -> None:
    """Unlike `worktree add -b`, this tells a branch that we made from one that was there."""
    log = ("--create-reflog", "-m", f"branch: Created from {commit}")
    try:
        run_git(repository.root, "update-ref", *log, f"refs/heads/{branch}", commit, "", pass_fds=fds)
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
        drop_registration(repository, path)  # somebody deleted the directory by hand
        run_git(repository.root, *arguments, pass_fds=fds)


def _branches_in_work(git_dir: Path) -> set[str]:
    """Branches a detached worktree will return to: of a rebase or a bisection under way."""
    files = ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START")
    return {line_of(git_dir / file).strip().removeprefix("refs/heads/") for file in files}
