"""Linked worktrees of a checkout that was moved or copied: git wrote absolute paths, on both sides.

`git worktree repair` alone does not do: it starts from the paths that git has on record, and in a copy those
are the original's worktrees, which it would take over. So both sides are written here, each only where it
names the other one in its old place. Index, HEAD and reflog lie in git's directory and are not touched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agent_farm.disk import read_plain, replace_file, stale_temporaries
from agent_farm.git.command import ask_git
from agent_farm.git.repository import Repository

_LONGEST = 16_384
_GIT_FILE = "gitdir: "


def reconnect_worktrees(repository: Repository, old_root: Path) -> list[Path]:
    """Worktrees that lie below the checkout and lay below `old_root`, made to name this repository."""
    return [
        tree
        for admin, tree in _displaced(repository, old_root)
        if _connect(repository, admin, tree, old_root)
    ]


def reconnect_others(repository: Repository) -> None:
    """Worktrees of the user's that lie elsewhere. Only for a checkout that was moved: they are no copy's."""
    ask_git(repository.root, "worktree", "repair")


def _displaced(repository: Repository, old_root: Path) -> Iterator[tuple[Path, Path]]:
    for admin in sorted((repository.common_dir / "worktrees").glob("*")):
        place = Path(_line(admin / "gitdir"))
        if place.name == ".git" and place.is_relative_to(old_root):
            yield admin, repository.root / place.parent.relative_to(old_root)


def _connect(repository: Repository, admin: Path, tree: Path, old_root: Path) -> bool:
    git_file = tree / ".git"
    if os.path.lexists(tree):
        for left in stale_temporaries(tree):  # of this very step, cut short
            if left.name.startswith("..git."):
                left.unlink()
        named = _line(git_file)
        here, there = admin, old_root / os.path.relpath(admin, repository.root)
        if named not in (f"{_GIT_FILE}{here}", f"{_GIT_FILE}{there}"):
            return False  # somebody put another repository there
        replace_file(git_file, f"{_GIT_FILE}{admin}\n", mode=0o644)
    replace_file(admin / "gitdir", f"{git_file}\n", mode=0o644)
    return os.path.lexists(tree)


def _line(file: Path) -> str:
    with suppress(OSError):
        return os.fsdecode(read_plain(file, limit=_LONGEST)).rstrip("\r\n")
    return ""
