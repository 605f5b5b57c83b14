"""A checkout that a branch is landed on: git with its directory given, and its index kept from other gits."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from agent_farm.disk import cannot_write, read_plain
from agent_farm.errors import LockTaken
from agent_farm.git.builder_tree import BuilderTree, WorktreeMismatch, linked_tree
from agent_farm.git.command import Argument, Options, ask_git, run_git_bytes
from agent_farm.git.registrations import linked_git_dir
from agent_farm.git.repository import Head, Repository
from agent_farm.git.worktrees import list_worktrees
from agent_farm.launch import as_command
from agent_farm.paths import WORKTREES_NAME

_POLL_SECONDS = 0.02
_MARK_LENGTH = 100


@dataclass(frozen=True, slots=True)
class Checkout:
    """`git_dir` holds its HEAD and index; a linked worktree has one of its own."""

    path: Path
    git_dir: Path

    @property
    def worktree_name(self) -> str | None:
        """git's own name of a linked worktree, None for the main checkout."""
        return self.git_dir.name if (self.git_dir / "commondir").exists() else None

    @property
    def common_dir(self) -> Path:
        return self.git_dir.parent.parent if self.worktree_name else self.git_dir

    @property
    def index(self) -> Path:
        return self.git_dir / "index"

    @property
    def index_lock(self) -> Path:
        """What every git makes before it changes the index, and removes after."""
        return self.git_dir / "index.lock"

    def git(self, *args: Argument, ok: Sequence[int] = (0,), **options: Unpack[Options]) -> bytes:
        return run_git_bytes(self.path, *self._given(args), ok=ok, **options)

    def ask(self, *args: Argument, **options: Unpack[Options]) -> tuple[int, bytes, bytes]:
        return ask_git(self.path, *self._given(args), **options)

    def head(self) -> Head:
        output = self.git("rev-parse", "HEAD", "--symbolic-full-name", "HEAD")
        commit, name = output.decode("utf-8", "surrogateescape").splitlines()
        return Head(commit, name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else None)

    def _given(self, args: Sequence[Argument]) -> tuple[Argument, ...]:
        # A file system monitor that git starts would live on, and hold the locks that are passed.
        own = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
        return (f"--git-dir={self.git_dir}", f"--work-tree={self.path}", *own, *args)


def checkout_at(repository: Repository, path: Path) -> Checkout:
    """The main checkout, or a linked worktree that is this repository's."""
    return main_checkout(repository) if path == repository.root else _linked(linked_tree(repository, path))


def _linked(tree: BuilderTree) -> Checkout:
    return Checkout(tree.path, tree.git_dir)


def main_checkout(repository: Repository) -> Checkout:
    return Checkout(repository.root, linked_git_dir(repository.root / ".git") or repository.common_dir)


def every_checkout(repository: Repository) -> Iterator[Checkout]:
    """Those that a person works in: the main checkout, and linked worktrees that are this repository's."""
    yield main_checkout(repository)
    for tree in list_worktrees(repository)[1:]:
        if not tree.path.is_relative_to(repository.root / WORKTREES_NAME) and tree.path.is_dir():
            with suppress(WorktreeMismatch):
                yield _linked(linked_tree(repository, tree.path))


def new_mark() -> str:
    return f"agent-farm {secrets.token_hex(16)}\n"


@contextmanager
def locked_index(checkout: Checkout, mark: str, *, wait: float) -> Iterator[None]:
    """No other git changes the index meanwhile; a lock that holds `mark` was left by the same merge."""
    path = checkout.index_lock
    deadline = time.monotonic() + wait
    while not _made(path, mark) and not is_marked(path, mark):
        if time.monotonic() >= deadline:
            raise LockTaken(
                f"Another git command is changing {checkout.path}",
                why=f"It holds {path}. If none runs, a git that was killed left it: remove that file.",
                hint=as_command("git", "-C", checkout.path, "status"),
            )
        time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        if is_marked(path, mark):
            with suppress(OSError):
                path.unlink()


def is_marked(lock: Path, mark: str) -> bool:
    try:
        return read_plain(lock, limit=_MARK_LENGTH) == mark.encode()
    except OSError:
        return False


def _made(path: Path, mark: str) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return False
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        with open(descriptor, "wb") as file:
            file.write(mark.encode())
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        with suppress(OSError):
            path.unlink()
        if isinstance(error, OSError):
            raise cannot_write(path, error) from error
        raise
    return True
