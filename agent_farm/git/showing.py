"""The text of what a builder changed."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from agent_farm.git.command import run_git
from agent_farm.git.divergence import merge_base
from agent_farm.git.repository import Repository
from agent_farm.git.snapshot import private_git_dir


def diff_worktree(
    repository: Repository, base: str, worktree: Path, *, stat: bool = False, color: bool = False
) -> str:
    """Everything since the worktree left `base`: commits, uncommitted changes and untracked files."""
    start = _start(repository, base, repository.head(worktree).commit)
    with tempfile.TemporaryDirectory(prefix="af-diff-") as scratch:
        index = Path(scratch, "index")
        with suppress(FileNotFoundError):
            shutil.copy2(private_git_dir(worktree) / "index", index)
        env = {"GIT_INDEX_FILE": str(index)}
        quiet = ("-c", "advice.addEmbeddedRepo=false", "-c", "core.safecrlf=false")
        run_git(worktree, *quiet, "add", "--intent-to-add", "--", ".", env=env)
        return run_git(worktree, *_command(stat, color), start, "--", env=env)


def diff_branch(
    repository: Repository, base: str, branch: str, *, stat: bool = False, color: bool = False
) -> str:
    """What the branch's commits changed since it left `base`."""
    tip = repository.resolve_commit(branch)
    return run_git(repository.root, *_command(stat, color), _start(repository, base, tip), tip, "--")


def _start(repository: Repository, base: str, tip: str) -> str:
    """Where the two parted; all of it is shown when they never were one."""
    commit = repository.resolve_commit(base)
    return merge_base(repository, commit, tip) or commit


def _command(stat: bool, color: bool) -> tuple[str, ...]:
    shown = ("--stat=200",) if stat else ("--patch",)
    return ("diff", "--no-ext-diff", f"--color={'always' if color else 'never'}", *shown)
