"""Linked worktrees of a checkout that was moved or copied: git wrote absolute paths, on both sides.

`git worktree repair` alone does not do: it starts from the paths that git has on record, and in a copy those
are the original's worktrees, which it would take over. So both sides are written here, each only where it
names the other one in its old place. Index, HEAD and reflog lie in git's directory and are not touched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from agent_farm.disk import read_plain, replace_file, stale_temporaries
from agent_farm.git.command import ask_git
from agent_farm.git.repository import Repository

_LONGEST = 16_384
_GIT_FILE = "gitdir: "


def reconnect_worktrees(repository: Repository, old_roots: Sequence[Path]) -> list[Path]:
    """Worktrees below the checkout that lay below one of `old_roots`, made to name this repository."""
    return [
        tree
        for admin, tree in _displaced(repository, old_roots)
        if _connect(repository, admin, tree, old_roots)
    ]


def reconnect_others(repository: Repository) -> None:
    """Worktrees of the user's that lie elsewhere. Only for a checkout that was moved: they are no copy's."""
    ask_git(repository.root, "worktree", "repair")


def write_git_file(tree: Path, admin: Path) -> None:
    """The worktree names git's directory; what a killed `af` left of this very step goes."""
    for left in stale_temporaries(tree):
        if left.name.startswith("..git."):
            left.unlink()
    replace_file(tree / ".git", f"{_GIT_FILE}{admin}\n", mode=0o644)


def _displaced(repository: Repository, old_roots: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    for admin in sorted((repository.common_dir / "worktrees").glob("*")):
        place = Path(_line(admin / "gitdir"))
        roots = [root for root in (repository.root, *old_roots) if place.is_relative_to(root)]
        if place.name == ".git" and roots:
            root = max(roots, key=lambda root: len(root.parts))
            yield admin, repository.root / place.parent.relative_to(root)


def _connect(repository: Repository, admin: Path, tree: Path, old_roots: Sequence[Path]) -> bool:
    git_file = tree / ".git"
    if os.path.lexists(tree):
        below = os.path.relpath(admin, repository.root)
        expected = [f"{_GIT_FILE}{place}" for place in (admin, *(root / below for root in old_roots))]
        if _line(git_file) not in expected:
            return False  # somebody put another repository there
        write_git_file(tree, admin)
    replace_file(admin / "gitdir", f"{git_file}\n", mode=0o644)
    return os.path.lexists(tree)


def _line(file: Path) -> str:
    with suppress(OSError):
        return os.fsdecode(read_plain(file, limit=_LONGEST)).rstrip("\r\n")
    return ""
