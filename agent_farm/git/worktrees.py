"""Creates linked worktrees, whole or not at all; lists and moves them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec import Struct

from agent_farm.disk import file_lock, make_directory
from agent_farm.errors import AgentFarmError
from agent_farm.git.checkout import Checkout, WorktreeMismatch, checkout_at, linked_tree, main_checkout
from agent_farm.git.git_process import GitError, Options, ask_git, git_environment, run_git
from agent_farm.git.registrations import branch_in, line_of, registrations
from agent_farm.git.repository import Repository
from agent_farm.pace import Step
from agent_farm.paths import WORKTREES_NAME

# Every git knows the empty tree without storing it; by the length of a hash.
_EMPTY_TREES = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}

_FIRST_COUNTED = "Updating files"  # as git calls it


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
    meanwhile: Callable[[], object] | None = None,
    step: Step = lambda what, done, total: None,
) -> None:
    """Create a worktree of `branch`, with all files or those in the directories `sparse`; or leave no trace.

    A new branch tracks `upstream`, the full name of a remote-tracking branch. git's record is made under the
    repository's lock (of 40 at a time, some would fail on git's own locks), the checkout outside it. All git
    children inherit `builder_lock_fd`, so a git that outlives us is noticed. `meanwhile` is called during the
    checkout, `step` with how far it is.
    """
    made_branch = made_worktree = False
    try:
        with file_lock(lock_path, inherit=True) as lock_fd:
            held = (lock_fd, builder_lock_fd)
            if new_branch:
                create_branch(repository, branch, base_commit, held)
                made_branch = True
            require_free(path)
            make_directory(path.parent, mode=0o755)  # git would follow the umask
            made_worktree = True
            _register(repository, path, branch, held)
            if sparse:
                from agent_farm.git.sparse import narrow  # takes 1 ms, and few builders are

                narrow(repository, linked_tree(repository, path), sparse, held)
            if new_branch and upstream:
                # A ref that no remote's refspec covers cannot be tracked; the branch works without.
                ask_git(repository.root, "branch", "--quiet", f"--set-upstream-to={upstream}", branch)
        check_out(repository, path, base_commit, fds=(builder_lock_fd,), meanwhile=meanwhile, step=step)
    except BaseException:
        is_gone = not made_worktree or _drop(repository, path, base_commit)
        if made_branch and is_gone:
            ask_git(repository.root, "update-ref", "-d", f"refs/heads/{branch}", base_commit)
            if upstream:
                from agent_farm.git.worktree_removal import forget_settings

                forget_settings(repository, branch)
        raise


def _drop(repository: Repository, path: Path, base_commit: str) -> bool:
    """Whether it is gone. Of what goes wrong, only the error that led here is shown."""
    from agent_farm.git.worktree_removal import drop_worktree  # only after a failure

    with suppress(AgentFarmError, OSError):
        return drop_worktree(repository, path, base_commit)
    return False


def check_out(
    repository: Repository,
    path: Path,
    commit: str,
    *,
    fds: Sequence[int] = (),
    meanwhile: Callable[[], object] | None = None,
    step: Step = lambda what, done, total: None,
) -> None:
    """Write all files of a worktree that has none, and its index.

    This is a change from nothing to HEAD, so that what somebody staged here a moment too early stays. No hook
    runs: `[worktree] setup` is for that. Filters get the whole environment, because those of git-lfs fetch.
    """
    tree = linked_tree(repository, path)
    nothing = _EMPTY_TREES[len(commit)]
    options = Options(base=git_environment(), pass_fds=fds, meanwhile=meanwhile)
    tree.run("read-tree", "-m", "-u", "-v", nothing, "HEAD", **(options | counted(step)))


def counted(step: Step) -> Options:
    """For a git that was told to say how far its checkout is, which it does after a second."""
    step(_FIRST_COUNTED, 0, 0)
    return Options(env={"GIT_PROGRESS_DELAY": "1"}, watch=partial(_pass_on, step))


def _pass_on(step: Step, said: bytes) -> None:
    for what, done, total in re.findall(rb"([A-Z][a-z ]+): +\d+% \((\d+)/(\d+)\)", said)[-1:]:
        step(what.decode(), int(done), int(total))


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


def create_branch(repository: Repository, branch: str, commit: str, fds: Sequence[int]) -> None:
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
        from agent_farm.git.worktree_removal import drop_registration

        drop_registration(repository, path)  # somebody deleted the directory by hand
        run_git(repository.root, *arguments, pass_fds=fds)


def _branches_in_work(git_dir: Path) -> set[str]:
    """Branches that a detached worktree will return to, after the rebase or bisect under way."""
    files = ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START")
    return {line_of(git_dir / file).strip().removeprefix("refs/heads/") for file in files}
