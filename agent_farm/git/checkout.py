"""How git is run in a checkout; and the only way to run it in a worktree that somebody else writes to.

Whoever works in a worktree may replace its `.git`, and a git directory names commands that git runs: a file
system monitor, hooks, filters. So git never looks for its directory there. It is told which one to use, once
`.git`, git's own record of the worktree and the path all name each other; these are only read as plain, short
files. git gets a small environment, and whatever configuration would run unasked is off, except filters.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NoReturn, Unpack

from msgspec import Struct

from agent_farm.builders.ref_names import OBJECT_NAME
from agent_farm.disk import read_plain
from agent_farm.errors import AgentFarmError
from agent_farm.git.branch_files import branch_in_files
from agent_farm.git.git_process import (
    Argument,
    GitError,
    Options,
    ask_git,
    command_at,
    raise_git_error,
    small_environment,
)
from agent_farm.launch import as_command
from agent_farm.paths import WORKTREES_NAME

if TYPE_CHECKING:
    from agent_farm.git.repository import Repository

_LONGEST = 16_384  # bytes of a file that holds one path or one name
_COMMIT = re.compile(OBJECT_NAME)
_PREFIX = "refs/heads/"

# Given on the command line, these override every file; git passes them on to the gits that it starts.
_SETTINGS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "submodule.recurse=false",
    "status.submoduleSummary=false",
    "log.showSignature=false",
    "gc.auto=0",
    "maintenance.auto=false",
)
# To look into a submodule, git runs there by that submodule's configuration; and attributes may name programs
# that show differences. Only an option on the command line stops every command from either.
_NOT_INTO = "--ignore-submodules=dirty"
NO_PROGRAMS = ("--no-ext-diff", "--no-textconv", "--submodule=short", _NOT_INTO)
_OPTIONS = dict.fromkeys(("diff", "diff-files", "diff-index", "diff-tree", "log", "show"), NO_PROGRAMS) | {
    "status": (_NOT_INTO,)
}

# What status shows for a worktree in which git must not be run.
Word = Literal["no tree", "not ours"]


class WorktreeMismatch(AgentFarmError):
    """git must not be run there; `word` says why, in a table."""

    code = "worktree-mismatch"

    def __init__(
        self, what: str, *, why: str | None = None, hint: str | None = None, word: Word = "not ours"
    ) -> None:
        super().__init__(what, why=why, hint=hint)
        self.word = word


class Head(Struct, frozen=True):
    """The commit a checkout is at, and its branch: None when HEAD is detached."""

    commit: str
    branch: str | None


class CheckedOut(Struct, frozen=True):
    """What HEAD holds: a branch or, when detached, a commit."""

    branch: str | None
    commit: str | None

    @property
    def name(self) -> str:
        """The name by which git finds its commit, from anywhere in the repository."""
        return f"{_PREFIX}{self.branch}" if self.branch is not None else self.commit or ""


class Checkout(Struct, frozen=True):
    """A checkout: files, index and HEAD. A linked worktree has a `git_dir` of its own for the last two.

    Only its user writes to this one. git is told where everything is, so that it looks for nothing.
    """

    path: Path
    git_dir: Path
    common_dir: Path

    # A file system monitor started by git would outlive it, and keep the locks that were passed to it.
    settings: ClassVar[Sequence[str]] = ("core.fsmonitor=false", "core.hooksPath=/dev/null")
    options: ClassVar[Mapping[str, Sequence[str]]] = {"status": ("--ignore-submodules=none",)}

    @property
    def worktree_name(self) -> str | None:
        """git's name for a linked worktree; None for the main checkout."""
        return self.git_dir.name if self.git_dir != self.common_dir else None

    @property
    def index(self) -> Path:
        return self.git_dir / "index"

    def run(self, *args: Argument, ok: Sequence[int] = (0,), **options: Unpack[Options]) -> str:
        """`run_git` here; the working directory is the top of the checkout."""
        return self.run_bytes(*args, ok=ok, **options).decode("utf-8", "surrogateescape")

    def run_bytes(self, *args: Argument, ok: Sequence[int] = (0,), **options: Unpack[Options]) -> bytes:
        status, output, stderr = self.ask(*args, **options)
        if status not in ok:
            raise_git_error(args, status, stderr)
        return output

    def ask(self, *args: Argument, **options: Unpack[Options]) -> tuple[int, bytes, bytes]:
        """`ask_git` here."""
        at = command_at(args) + 1
        own = self.options.get(str(args[at - 1]), ())
        settings = (argument for setting in self.settings for argument in ("-c", setting))
        given = (f"--git-dir={self.git_dir}", f"--work-tree={self.path}", "--no-pager", *settings)
        return ask_git(self.path, *given, *args[:at], *own, *args[at:], **self._in(options))

    def checked_out(self) -> CheckedOut:
        """What HEAD holds, read without a process if possible."""
        try:
            held = self._held()
        except OSError as error:
            raise GitError(f"HEAD of {self.path} cannot be read", why=error.strerror) from error
        if held is None:
            head = self._asked_head()
            return CheckedOut(head.branch, head.commit)
        return held

    def head(self) -> Head:
        """The commit that is checked out, and its branch unless HEAD is detached; read without a process if
        possible."""
        held = None
        with suppress(OSError):
            held = self._held()
        if held is not None:
            commit = held.commit if held.branch is None else branch_in_files(self.common_dir, held.branch)
            if commit:
                return Head(commit, held.branch)
        return self._asked_head()

    def _held(self) -> CheckedOut | None:
        """What the file says; None if references are kept in another format."""
        text = os.fsdecode(read_plain(self.git_dir / "HEAD", limit=_LONGEST)).strip()
        if text.startswith(f"ref: {_PREFIX}") and not text.endswith("/.invalid"):
            return CheckedOut(text.removeprefix(f"ref: {_PREFIX}"), None)
        return CheckedOut(None, text) if _COMMIT.fullmatch(text) else None

    def _asked_head(self) -> Head:
        status, output, stderr = self.ask("rev-parse", "HEAD", "--symbolic-full-name", "HEAD")
        if status:
            raise_no_head(self.path, stderr.decode("utf-8", "replace"))
        commit, name = output.decode("utf-8", "surrogateescape").splitlines()
        return Head(commit, name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else None)

    def _in(self, options: Options) -> Options:
        return options


class BuilderTree(Checkout, frozen=True):
    """A linked worktree of this repository that somebody else writes to.

    Only `add` still looks into submodules: those that its paths cover.
    """

    settings: ClassVar[Sequence[str]] = _SETTINGS
    options: ClassVar[Mapping[str, Sequence[str]]] = _OPTIONS

    def _in(self, options: Options) -> Options:
        # Otherwise git would read where its configuration is from a file in `git_dir`, which a builder might
        # write to after it was checked.
        own = {"GIT_COMMON_DIR": str(self.common_dir), **(options.get("env") or {})}
        base = options.get("base")
        return {**options, "env": own, "base": small_environment() if base is None else base}


def raise_no_head(checkout: Path, stderr: str) -> NoReturn:
    if "unknown revision" in stderr or "ambiguous argument 'HEAD'" in stderr:
        raise AgentFarmError(
            f"The repository in {checkout} has no commit yet",
            why="A builder's worktree starts from a commit.",
            hint='git add -A && git commit --allow-empty -m "First commit"',
        )
    raise GitError("HEAD cannot be read", why=stderr.strip(), stderr=stderr)


def main_checkout(repository: Repository) -> Checkout:
    return Checkout(repository.root, repository.git_dir, repository.common_dir)


def checkout_at(repository: Repository, path: Path) -> Checkout:
    """The main checkout, or a linked worktree that only its user writes to."""
    if path == repository.root:
        return main_checkout(repository)
    tree = linked_tree(repository, path)
    return Checkout(tree.path, tree.git_dir, tree.common_dir)


def builder_tree(repository: Repository, id: str, path: Path) -> BuilderTree:
    """The worktree of the builder with this record; WorktreeMismatch if it is not this farm's."""
    if not os.path.lexists(path):
        raise WorktreeMismatch(f"{path} is gone", hint="af doctor --fix", word="no tree")
    own = os.path.join(os.path.realpath(repository.root), WORKTREES_NAME, id)
    real = os.path.realpath(path)
    if real != own or not path.is_dir():
        raise WorktreeMismatch(
            f"{path} is not the worktree of {id}",
            why=f"It leads to {real}, and the worktree of {id} is the directory {own}.",
            hint="af doctor",
        )
    return linked_tree(repository, path)


def linked_tree(repository: Repository, path: Path) -> BuilderTree:
    """A linked worktree, wherever it is; WorktreeMismatch unless it and the repository name each other.

    Works on plain strings, because a status asks for hundreds. A path as git writes it needs no resolving:
    the files were read as no links, and `git_dir` is a real path.
    """
    common = os.path.realpath(repository.common_dir)
    file = f"{path}/.git"
    target = _only_line(file, path)
    if not target.startswith("gitdir: "):
        raise _mismatch(path, f"{file} does not name a git directory.")
    git_dir = os.path.realpath(os.path.join(path, target.removeprefix("gitdir: ")))
    if os.path.dirname(git_dir) != f"{common}/worktrees":
        raise _mismatch(path, f"{file} names {git_dir}, which is not one of {common}/worktrees.", repair=True)
    back = _only_line(f"{git_dir}/gitdir", path)
    if not _is_git_file(os.path.join(git_dir, back), path):
        raise _mismatch(path, f"{file} names {git_dir}, and that belongs to {back}.", repair=True)
    shared = _only_line(f"{git_dir}/commondir", path)
    if shared != "../.." and (real := os.path.realpath(os.path.join(git_dir, shared))) != common:
        raise _mismatch(path, f"{git_dir} belongs to the repository {real}.")
    return BuilderTree(path, Path(git_dir), Path(common))


def _is_git_file(place: str, worktree: Path) -> bool:
    return place == f"{worktree}/.git" or os.path.realpath(place) == f"{os.path.realpath(worktree)}/.git"


def _only_line(file: str, worktree: Path) -> str:
    try:
        return os.fsdecode(read_plain(file, limit=_LONGEST)).rstrip("\r\n")
    except OSError as error:
        raise _mismatch(worktree, f"{file} cannot be read: {error.strerror}") from error


def _mismatch(path: Path, why: str, *, repair: bool = False) -> WorktreeMismatch:
    hint = as_command("git", "worktree", "repair", path) if repair else "af doctor"
    return WorktreeMismatch(f"{path} is not a worktree of this repository", why=why, hint=hint)
