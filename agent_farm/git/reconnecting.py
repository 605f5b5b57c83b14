"""Connects worktrees with git's directories about them again: after a move, a copy, or a loss of one side."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from agent_farm.disk import make_directory
from agent_farm.git.checkout import linked_tree
from agent_farm.git.git_process import ask_git, run_git
from agent_farm.git.registrations import Registration, connect, line_of, registrations
from agent_farm.git.repository import Repository


def reconnect_worktrees(repository: Repository, old_roots: Sequence[Path]) -> list[Path]:
    """Worktrees below the checkout that used to be below one of `old_roots`, made to name this repository.

    A side is only changed if it names the other's old place; index, HEAD and reflog are not touched.
    """
    found = []
    for one in registrations(repository.common_dir):
        roots = [root for root in (repository.root, *old_roots) if one.tree.is_relative_to(root)]
        if not roots:
            continue
        tree = repository.root / one.tree.relative_to(max(roots, key=lambda root: len(root.parts)))
        below = os.path.relpath(one.admin, repository.root)
        places = (one.admin, *(os.path.normpath(root / below) for root in old_roots))
        expected = [f"gitdir: {place}" for place in places]
        is_there = os.path.lexists(tree)
        if is_there and line_of(tree / ".git") not in expected:
            continue  # somebody put another repository there
        connect(one.admin, tree)
        found += [tree] if is_there else []
    return found


def reconnect_others(repository: Repository) -> None:
    """Reconnect the user's worktrees elsewhere. Only after a move: those do not belong to a copy."""
    ask_git(repository.root, "worktree", "repair")


def repair_worktree(repository: Repository, path: Path) -> None:
    """Make git and a worktree that git itself moved name each other again."""
    run_git(repository.root, "worktree", "repair", path)


def bring_back(repository: Repository, lost: Registration) -> None:
    """Make the directory again, with everything in its index; what was staged stays staged."""
    make_directory(lost.tree, mode=0o755)
    connect(lost.admin, lost.tree)
    linked_tree(repository, lost.tree).run("checkout-index", "--all", "--quiet")
