"""Repositories inside a worktree, whose work no commit and no salvage of the worktree holds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent_farm.errors import AgentFarmError
from agent_farm.git.changes import tree_state
from agent_farm.git.command import ask_git, paths_of, run_git


@dataclass(frozen=True, slots=True)
class NestedRepository:
    """`path` is relative to the worktree; `reason` says what only it holds."""

    path: str
    kind: Literal["repository", "submodule"]
    reason: str


def nested_repositories(worktree: Path) -> list[NestedRepository]:
    """Untracked and ignored directories with a `.git` of their own, and submodules with work of their own."""
    own = [NestedRepository(path, "repository", "a repository of its own") for path in _untracked(worktree)]
    return own + [
        NestedRepository(path, "submodule", reason)
        for path in _submodules(worktree)
        if (reason := _local_work(worktree / path)) is not None
    ]


def _untracked(worktree: Path) -> Iterator[str]:
    output = run_git(worktree, "ls-files", "--others", "--directory", "-z")
    for path in paths_of(output):
        if path.endswith("/") and not path.startswith((".builders/", ".agent-farm/")):
            yield from _below(worktree, path.rstrip("/"))


def _below(worktree: Path, folder: str) -> Iterator[str]:
    for current, folders, files in os.walk(worktree / folder):
        if ".git" in folders or ".git" in files:
            yield os.path.relpath(current, worktree)
            folders.clear()  # what is inside belongs to it


def _submodules(worktree: Path) -> list[str]:
    """Submodules that are checked out."""
    lines = paths_of(run_git(worktree, "ls-files", "--stage", "-z"))
    paths = [line.partition("\t")[2] for line in lines if line.startswith("160000 ")]
    return [path for path in dict.fromkeys(paths) if os.path.lexists(worktree / path / ".git")]


def _local_work(submodule: Path) -> str | None:
    """What would be lost with it, None when its remote has everything."""
    try:
        if not tree_state(submodule).clean:
            return "uncommitted changes"
    except AgentFarmError as error:
        return f"it cannot be read: {error.why or error.what}"
    status, output, _ = ask_git(
        submodule, "rev-list", "--count", "HEAD", "--branches", "--glob=refs/stas[h]", "--not", "--remotes"
    )
    if status:
        return "its commits cannot be read"
    if output.strip() != b"0":
        count = int(output)
        commits = "1 commit that is" if count == 1 else f"{count} commits that are"
        return f"{commits} on none of its remote branches"
    inner = nested_repositories(submodule)
    return f"{inner[0].path}: {inner[0].reason}" if inner else None
