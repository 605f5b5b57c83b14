"""What is put away comes back, and takes the place of nothing that is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.errors import AgentFarmError
from agent_farm.git.keeping import bring_back_branch, put_away, take_out
from agent_farm.git.repository import find_repository
from tests.gitrepo import commit_files, git


def test_a_worktree_does_not_come_back_to_a_place_that_is_taken(repo: Path) -> None:
    path, place = repo / ".builders/x", repo / ".agent-farm/trash/x/worktree"
    place.parent.mkdir(parents=True)
    git(repo, "worktree", "add", "-q", "-b", "work", str(path))
    repository = find_repository(repo)
    put_away(repository, path, place)
    path.mkdir()
    before = git(repo, "worktree", "list", "--porcelain")
    with pytest.raises(AgentFarmError, match="cannot come back"):
        take_out(repository, place, path)
    assert git(repo, "worktree", "list", "--porcelain") == before
    path.rmdir()
    take_out(repository, place, path)
    assert git(path, "status", "--porcelain", "--branch") == "## work"


def test_a_reflog_is_not_replaced_by_an_older_one(repo: Path, tmp_path: Path) -> None:
    """The branch was there all the while, and has come back to where it was."""
    at = git(repo, "rev-parse", "HEAD")
    git(repo, "branch", "work")
    log = repo / ".git/logs/refs/heads/work"
    older = tmp_path / "log"
    older.write_bytes(log.read_bytes())
    git(repo, "switch", "-q", "work")
    newer = commit_files(repo, {"a": "1\n"})
    git(repo, "reset", "-q", "--hard", at)
    bring_back_branch(find_repository(repo), "work", at, older, [])
    assert newer in log.read_text()


def test_a_branch_that_is_made_again_has_its_reflog(repo: Path, tmp_path: Path) -> None:
    at = git(repo, "rev-parse", "HEAD")
    newer = commit_files(repo, {"a": "1\n"})
    older = tmp_path / "log"
    older.write_bytes((repo / ".git/logs/refs/heads/main").read_bytes())
    bring_back_branch(find_repository(repo), "work", at, older, [])
    assert newer in (repo / ".git/logs/refs/heads/work").read_text()
