"""What git's files tell about a branch is what git says, and where they do not tell, git is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_farm.git.checkout import Head
from agent_farm.git.repository import find_repository
from tests.gitrepo import git


def _new(repo: Path) -> None:
    git(repo, "branch", "builder/x")


def _packed(repo: Path) -> None:
    git(repo, "branch", "builder/x")
    git(repo, "pack-refs", "--all")


def _packed_and_gone(repo: Path) -> None:
    _packed(repo)
    git(repo, "branch", "-D", "builder/x")


def _below_it(repo: Path) -> None:
    git(repo, "branch", "builder/x/y")


def _beside_it(repo: Path) -> None:
    git(repo, "branch", "builder/xy")
    git(repo, "tag", "builder/x")
    git(repo, "pack-refs", "--all")


def _another_name_for_one(repo: Path) -> None:
    git(repo, "branch", "real")
    git(repo, "symbolic-ref", "refs/heads/builder/x", "refs/heads/real")


def _another_name_for_none(repo: Path) -> None:
    git(repo, "symbolic-ref", "refs/heads/builder/x", "refs/heads/nothing")


@pytest.mark.parametrize(
    ("make", "there"),
    [
        (_new, True),
        (_packed, True),
        (_packed_and_gone, False),
        (_below_it, False),
        (_beside_it, False),
        (_another_name_for_one, True),
        (_another_name_for_none, False),
    ],
)
def test_whether_a_branch_is_there(repo: Path, make: Callable[[Path], None], there: bool) -> None:
    make(repo)

    found = find_repository(repo)

    assert found.has_branch("builder/x") is there is (found.branch_commit("builder/x") is not None)


@pytest.mark.parametrize("name", ["../../HEAD", "/etc/passwd", "a/../main", "main/", ""])
def test_a_name_that_is_no_branch(repo: Path, name: str) -> None:
    assert not find_repository(repo).has_branch(name)


@pytest.mark.parametrize(
    "change",
    [
        ("pack-refs", "--all"),
        ("checkout", "--quiet", "--detach"),
        ("checkout", "--quiet", "-b", "topic/a"),
        ("symbolic-ref", "HEAD", "refs/heads/alias"),
    ],
    ids=" ".join,
)
def test_head_is_what_git_says(repo: Path, change: tuple[str, ...]) -> None:
    git(repo, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    git(repo, *change)
    commit, name = git(repo, "rev-parse", "HEAD", "--symbolic-full-name", "HEAD").split()

    branch = name.removeprefix("refs/heads/") if name != "HEAD" else None
    assert find_repository(repo).head() == Head(commit, branch)


def test_neither_costs_a_process(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(repo, "branch", "builder/x")
    found = find_repository(repo)
    monkeypatch.setenv("PATH", "")

    assert found.has_branch("builder/x")
    assert not found.has_branch("builder/y")
    assert found.head().branch == "main"
