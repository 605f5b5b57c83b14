"""The text of what a builder changed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from agent_farm.git.command import run_git
from agent_farm.git.divergence import merge_base
from agent_farm.git.repository import Repository
from agent_farm.git.snapshot import private_git_dir


def diff_worktree(
    repository: Repository, start: str, worktree: Path, *, stat: bool = False, color: bool = False
) -> str:
    """Everything in the worktree that `start` lacks: commits, uncommitted changes and untracked files."""
    with tempfile.TemporaryDirectory(prefix="af-diff-") as scratch:
        index = Path(scratch, "index")
        with suppress(FileNotFoundError):
            shutil.copy2(private_git_dir(worktree) / "index", index)
        env = {"GIT_INDEX_FILE": str(index)}
        quiet = ("-c", "advice.addEmbeddedRepo=false", "-c", "core.safecrlf=false")
        run_git(worktree, *quiet, "add", "--intent-to-add", "--", ".", env=env)
        return run_git(worktree, *_command(stat, color), start, "--", env=env)


def diff_commits(
    repository: Repository, start: str, tip: str, *, stat: bool = False, color: bool = False
) -> str:
    """What the commits up to `tip` changed since `start`."""
    return run_git(repository.root, *_command(stat, color), start, tip, "--")


def start_of_work(repository: Repository, begun: str, tip: str, bases: Sequence[str]) -> str:
    """The commit after which everything up to `tip` is the builder's own.

    That is where it began, or the newest commit of its `bases` that it took in since. Once one of them
    contains `tip`, there is no telling whose the commits were: then it is where it began.
    """
    commit = repository.resolve_commit(begun)
    first = merge_base(repository, commit, tip) or commit  # all of it is shown when they never were one
    if not bases:
        return first
    # with several others, git takes them as if they had been merged
    newest = run_git(repository.root, "merge-base", tip, *bases, ok=(0, 1)).strip()
    if newest in ("", tip) or merge_base(repository, first, newest) != first:
        return first
    return newest


def _command(stat: bool, color: bool) -> tuple[str, ...]:
    shown = ("--stat=200",) if stat else ("--patch",)
    return ("diff", "--no-ext-diff", f"--color={'always' if color else 'never'}", *shown)
