"""How git is run in a checkout; and the only way in one that somebody else writes to.

Whoever works in a worktree may replace its `.git`, and a git directory names commands that git runs: a file
system monitor, hooks, filters. So git is never left to find its directory there. It is told which one to
use, after `.git`, git's own record of the worktree and the path name each other; these are read as plain,
short files. It gets a small environment, and what is configured to run on its own is off, except filters.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NoReturn, Unpack

from msgspec import Struct

from agent_farm.builders.ref_names import OBJECT_NAME
from agent_farm.disk import read_plain
from agent_farm.errors import AgentFarmError
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

# On the command line they win over every file, and git hands them on to the gits it starts.
_SETTINGS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "submodule.recurse=false",
    "status.submoduleSummary=false",
    "log.showSignature=false",
    "gc.auto=0",
    "maintenance.auto=false",
)
# Looking into a submodule is running git by what is configured there; and files may name programs that show
# their differences. Only an option keeps every command from it.
_NOT_INTO = "--ignore-submodules=dirty"
NO_PROGRAMS = ("--no-ext-diff", "--no-textconv", "--submodule=short", _NOT_INTO)
_OPTIONS = dict.fromkeys(("diff", "diff-files", "diff-index", "diff-tree", "log", "show"), NO_PROGRAMS) | {
    "status": (_NOT_INTO,)
}

# What status shows if git must not be asked.
Word = Literal["no tree", "not ours"]


class WorktreeMismatch(AgentFarmError):
    """git is not run there; `word` says it in a table."""

    code = "worktree-mismatch"

    def __init__(
        self, what: str, *, why: str | None = None, hint: str | None = None, word: Word = "not ours"
    ) -> None:
        super().__init__(what, why=why, hint=hint)
        self.word = word


class Head(Struct, frozen=True):
    """What a checkout stands on; no branch when HEAD is detached."""

    commit: str
    branch: str | None


class CheckedOut(Struct, frozen=True):
    """What HEAD says: a branch, or a commit when it is detached."""

    branch: str | None
    commit: str | None

    @property
    def name(self) -> str:
        """How git is asked for its commit, in the repository."""
        return f"{_PREFIX}{self.branch}" if self.branch is not None else self.commit or ""


class Checkout(Struct, frozen=True):
    """Files, index and HEAD; `git_dir` has the last two, and a linked worktree one of its own.

    This one its user alone writes to. git is told where it is, so that nothing is looked for.
    """

    path: Path
    git_dir: Path
    common_dir: Path

    # A file system monitor that git starts would live on, and hold the locks that are passed.
    settings: ClassVar[Sequence[str]] = ("core.fsmonitor=false", "core.hooksPath=/dev/null")
    options: ClassVar[Mapping[str, Sequence[str]]] = {"status": ("--ignore-submodules=none",)}

    @property
    def worktree_name(self) -> str | None:
        """git's own name of a linked worktree, None for the main checkout."""
        return self.git_dir.name if self.git_dir != self.common_dir else None

    @property
    def index(self) -> Path:
        return self.git_dir / "index"

    def run(self, *args: Argument, ok: Sequence[int] = (0,), **options: Unpack[Options]) -> str:
        """As `run_git`; the working directory is the top of the checkout."""
        return self.run_bytes(*args, ok=ok, **options).decode("utf-8", "surrogateescape")

    def run_bytes(self, *args: Argument, ok: Sequence[int] = (0,), **options: Unpack[Options]) -> bytes:
        status, output, stderr = self.ask(*args, **options)
        if status not in ok:
            raise_git_error(args, status, stderr)
        return output

    def ask(self, *args: Argument, **options: Unpack[Options]) -> tuple[int, bytes, bytes]:
        """As `ask_git`."""
        at = command_at(args) + 1
        own = self.options.get(str(args[at - 1]), ())
        settings = (argument for setting in self.settings for argument in ("-c", setting))
        given = (f"--git-dir={self.git_dir}", f"--work-tree={self.path}", "--no-pager", *settings)
        return ask_git(self.path, *given, *args[:at], *own, *args[at:], **self._in(options))

    def checked_out(self) -> CheckedOut:
        """Read from HEAD, without a process."""
        try:
            text = os.fsdecode(read_plain(self.git_dir / "HEAD", limit=_LONGEST)).strip()
        except OSError as error:
            raise GitError(f"HEAD of {self.path} cannot be read", why=error.strerror) from error
        if text.startswith(f"ref: {_PREFIX}") and not text.endswith("/.invalid"):
            return CheckedOut(text.removeprefix(f"ref: {_PREFIX}"), None)
        if _COMMIT.fullmatch(text):
            return CheckedOut(None, text)
        head = self.head()  # references that are kept in no plain file
        return CheckedOut(head.branch, head.commit)

    def head(self) -> Head:
        """The commit that is checked out, and its branch unless HEAD is detached."""
        status, output, stderr = self.ask("rev-parse", "HEAD", "--symbolic-full-name", "HEAD")
        if status:
            raise_no_head(self.path, stderr.decode("utf-8", "replace"))
        commit, name = output.decode("utf-8", "surrogateescape").splitlines()
        return Head(commit, name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else None)

    def _in(self, options: Options) -> Options:
        return options


class BuilderTree(Checkout, frozen=True):
    """A linked worktree that is this repository's, and that somebody else writes to.

    `add` alone still looks into the submodules that its paths cover.
    """

    settings: ClassVar[Sequence[str]] = _SETTINGS
    options: ClassVar[Mapping[str, Sequence[str]]] = _OPTIONS

    def _in(self, options: Options) -> Options:
        # Else git would take the place of the configuration from a file in `git_dir`, which a builder may be
        # able to write after it was checked.
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
    """The main checkout, or a linked worktree of this repository that is its user's own."""
    if path == repository.root:
        return main_checkout(repository)
    tree = linked_tree(repository, path)
    return Checkout(tree.path, tree.git_dir, tree.common_dir)


def builder_tree(repository: Repository, id: str, path: Path) -> BuilderTree:
    """The worktree that a record (its id and path) is about; WorktreeMismatch when it is not this farm's."""
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
    """A linked worktree wherever it lies; WorktreeMismatch unless it and the repository name each other.

    In plain strings: a status asks for hundreds. What is written as git writes it leads where it says, as
    the files are no links and `git_dir` is a real path.
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
