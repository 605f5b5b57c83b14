"""Which worktree of a bare repository, which has no main checkout, is the farm's home.

A lock marks the home, and keeps `git worktree remove` from deleting the builders inside. Until there is a
builder, the home is the worktree of the repository's own branch (its HEAD), or the first by name.
"""

from __future__ import annotations

import os
from pathlib import Path

from agent_farm.disk import replace_file
from agent_farm.errors import AgentFarmError
from agent_farm.git.registrations import Registration, branch_in, line_of, linked_git_dir, registrations
from agent_farm.launch import as_command
from agent_farm.paths import WORKTREES_NAME

_MARK = "home of agent-farm"


def home_worktree(common_dir: Path) -> Registration:
    """The home; AgentFarmError with the next command if no worktree can be it."""
    own = [one for one in registrations(common_dir) if one.tree.parent.name != WORKTREES_NAME]
    for one in own:
        if _MARK in (one.locked or ""):
            return _connected(one, common_dir)
    there = [one for one in own if one.tree.is_dir()]
    if not there:
        raise AgentFarmError(
            f"The bare repository {common_dir} has no worktree",
            why="A farm needs one for its builders and settings, and to land work in.",
            hint=_adding(common_dir),
        )
    main = branch_in(common_dir)
    return _connected(next((one for one in there if branch_in(one.admin) == main), there[0]), common_dir)


def claim_home(admin: Path) -> None:
    """Lock the worktree and mark it as home; a reason already in the lock is kept."""
    lock = admin / "locked"
    reason = line_of(lock)
    if _MARK not in reason:
        replace_file(lock, f"{reason}, {_MARK}\n" if reason else f"{_MARK}\n", mode=0o644)


def release_home(admin: Path) -> None:
    lock = admin / "locked"
    reason = line_of(lock)
    if reason == _MARK:
        lock.unlink()
    elif _MARK in reason:
        replace_file(lock, reason.replace(f", {_MARK}", "") + "\n", mode=0o644)


def _connected(one: Registration, common_dir: Path) -> Registration:
    """The worktree, if it and git's record name each other: git runs there, and a clone cannot fake that."""
    target = linked_git_dir(one.tree / ".git")
    if target is None or os.path.realpath(target) != os.path.realpath(one.admin):
        beside = common_dir.parent / one.tree.name  # where it is when both were moved together
        place = beside if not one.tree.exists() and beside.is_dir() else one.tree
        raise AgentFarmError(
            f"The farm's home {one.tree} and its repository {common_dir} do not refer to each other",
            why="One of them was moved.",
            hint=as_command("git", "-C", common_dir, "worktree", "repair", place),
        )
    return one


def _adding(common_dir: Path) -> str:
    branch = branch_in(common_dir) or "main"
    beside = common_dir.parent / branch.rpartition("/")[2]
    return as_command("git", "-C", common_dir, "worktree", "add", beside, branch)
