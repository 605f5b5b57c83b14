"""A checkpoint after a git that was killed, or a machine whose power failed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from agent_farm.farm.farm import open_farm
from agent_farm.git.checkout import BuilderTree, linked_tree
from agent_farm.git.checkpoint_making import hold_worktree
from agent_farm.git.git_process import GitError
from tests.gitrepo import git


@pytest.fixture
def tree(repo: Path) -> BuilderTree:
    place = repo / ".builders/x"
    git(repo, "worktree", "add", "-q", "-b", "builder/x", str(place))
    found = linked_tree(open_farm(repo).repository, place)
    look(found, "before")
    return found


def look(tree: BuilderTree, text: str) -> str:
    (tree.path / "left.txt").write_text(f"{text}\n")
    held = hold_worktree(tree, most_bytes=10**8)
    return git(tree.path, "show", f"{held.work}:left.txt")


def test_an_index_that_is_damaged(tree: BuilderTree) -> None:
    own = tree.git_dir / "agent-farm-checkpoint"
    own.write_bytes(own.read_bytes()[:40])
    assert look(tree, "after") == "after"
    assert look(tree, "later") == "later"


def test_a_lock_that_was_left(tree: BuilderTree) -> None:
    lock = tree.git_dir / "agent-farm-checkpoint.lock"
    lock.touch()
    with pytest.raises(GitError, match="update-index"):
        look(tree, "a git may be at work")
    assert lock.exists()
    os.utime(lock, (time.time() - 3600, time.time() - 3600))
    assert look(tree, "after") == "after"
    assert not lock.exists()
