"""Creates linked worktrees, whole or not at all; lists them, moves them, and removes them."""

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

# Every git knows the empty tree without storing it; by the length of a hash.
_EMPTY_TREES = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}


class BranchTaken(AgentFarmError):
    """Somebody else created a branch of that name first."""


class Worktree(Struct, frozen=True):
    """A checkout that git knows. `locked_reason` is "" if it is locked without a reason."""

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
    """Create a worktree of `branch`, with all files or those in the directories `sparse`; or leave no trace.

    A new branch tracks `upstream`, the full name of a remote-tracking branch. git's record is made under the
    repository's lock (of 40 at a time, some would fail on git's own locks), the checkout outside it. All git
    children inherit `builder_lock_fd`, so a git that outlives us is noticed.
    """
    made_branch = made_worktree = False
    try:
        with file_lock(lock_path, inherit=True) as lock_fd:
            held = (lock_fd, builder_lock_fd)
            if new_branch:
                _create_branch(repository, branch, base_commit, held)
                made_branch = True
            require_free(path)
            make_directory(path.parent, mode=0o755)  # git would follow the umask
            made_worktree = True
            _register(repository, path, branch, held)
            if sparse:
                narrow(repository, linked_tree(repository, path), sparse, held)
            if new_branch and upstream:
                # A ref that no remote's refspec covers cannot be tracked; the branch works without.
                ask_git(repository.root, "branch", "--quiet", f"--set-upstream-to={upstream}", branch)
        _check_out(repository, path, base_commit, fds=(builder_lock_fd,))
    except BaseException:
        is_gone = not made_worktree
        if made_worktree:
            with suppress(AgentFarmError, OSError):  # only the error that led here is shown
                is_gone = drop_worktree(repository, path, base_commit)
        if made_branch and is_gone:
            ask_git(repository.root, "update-ref", "-d", f"refs/heads/{branch}", base_commit)
            if upstream:
                forget_settings(repository, branch)
        raise


def _check_out(repository: Repository, path: Path, commit: str, *, fds: Sequence[int] = ()) -> None:
    """Write all files of a worktree that has none, and its index.

    This is a change from nothing to HEAD, so that what somebody staged here a moment too early stays. No hook
    runs: `[worktree] setup` is for that. Filters get the whole environment, because those of git-lfs fetch.
    """
    tree = linked_tree(repository, path)
    nothing = _EMPTY_TREES[len(commit)]
    tree.run("read-tree", "-m", "-u", nothing, "HEAD", base=git_environment(), pass_fds=fds)


def add_slot(
    repository: Repository, path: Path, commit: str, *, lock_path: Path, sparse: Sequence[str] = ()
) -> None:
    """Create a detached worktree with all files of `commit`, and an index that knows their times."""
    with file_lock(lock_path, inherit=True) as lock:
        detached = ("worktree", "add", "--quiet", "--detach", "--no-checkout")
        run_git(repository.root, *detached, "--", path, commit, pass_fds=(lock,))
        if sparse:
            narrow(repository, linked_tree(repository, path), sparse, (lock,))
    _check_out(repository, path, commit)
    linked_tree(repository, path).run("update-index", "-q", "--refresh")


def update_slot(repository: Repository, path: Path, commit: str, *, fds: Sequence[int] = ()) -> None:
    """Switch an untouched slot to another commit; only files that differ are written."""
    tree = linked_tree(repository, path)
    tree.run("checkout", "--quiet", "--detach", commit, base=git_environment(), pass_fds=fds)


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
    _create_branch(repository, branch, commit, fds)
    tree = linked_tree(repository, path)
    tree.run("symbolic-ref", "HEAD", f"refs/heads/{branch}", pass_fds=fds)
    made, _, _ = line_of(tree.common_dir / "logs/refs/heads" / branch).partition("\t")
    if made:  # otherwise reflogs are not kept in files
        replace_file(tree.git_dir / "logs/HEAD", f"{made}\n", mode=0o644)


def move_worktree(repository: Repository, path: Path, target: Path) -> None:
    """Move it with everything in it; git refuses if it is locked or has submodules."""
    run_git(repository.root, "worktree", "move", path, target)


def require_free(path: Path) -> None:
    """Raise if anything but an empty directory is where a worktree is to go."""
    if os.path.lexists(path) and not (path.is_dir() and not path.is_symlink() and not any(path.iterdir())):
        raise AgentFarmError(f"{path} already exists", hint="af doctor")


def list_worktrees(repository: Repository) -> list[Worktree]:
    """All worktrees, the main checkout first."""
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
    # references in another format than plain files
    own = (f"--git-dir={git_dir}", "symbolic-ref", "--quiet", "--short", "HEAD")
    return run_git(repository.root, *own, ok=(0, 1)).strip() or None


def every_checkout(repository: Repository) -> Iterator[Checkout]:
    """The checkouts that people work in: the main one, and linked worktrees outside `.builders`."""
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
    """Whether `path` is a linked worktree of this repository: each names the other."""
    try:
        linked_tree(repository, path)
    except WorktreeMismatch:
        return False
    return True


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


def _create_branch(repository: Repository, branch: str, commit: str, fds: Sequence[int]) -> None:
    """Unlike `worktree add -b`, this tells a branch created here from one that existed."""
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
    """Branches that a detached worktree will return to, after the rebase or bisect under way."""
    files = ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START")
    return {line_of(git_dir / file).strip().removeprefix("refs/heads/") for file in files}
