"""What names of remote branches mean: as a base, and as a branch to go on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.git.landing_targets import landing_targets
from agent_farm.git.remotes import RemoteBranch, find_base, remote_branches_of
from agent_farm.git.repository import find_repository
from tests.gitrepo import git


@pytest.fixture
def cloned(repo: Path) -> Path:
    """`main` follows `origin/main`; `feature` is on `origin` and `team/fork`, whose name has a slash."""
    git(repo, "branch", "feature")
    for remote in ("origin", "team/fork"):
        git(repo, "clone", "-q", "--bare", str(repo), str(repo.parent / remote))
        git(repo, "remote", "add", remote, str(repo.parent / remote))
    git(repo, "fetch", "-q", "--all")
    git(repo, "branch", "-q", "-D", "feature")
    git(repo, "branch", "-q", "-u", "origin/main")
    git(repo, "remote", "set-head", "origin", "main")
    return repo


def branches_of(repo: Path, base: str) -> tuple[str, ...]:
    found = find_base(find_repository(repo), base)
    assert found.exists
    assert found.is_branch
    return found.branches


def test_a_remote_branch_stands_for_the_local_one_that_follows_it(cloned: Path) -> None:
    for base in ("origin/main", "origin/HEAD", "origin", "refs/remotes/origin/main", "main", "HEAD"):
        assert branches_of(cloned, base) == ("main",)
    git(cloned, "branch", "-q", "-m", "trunk")
    assert branches_of(cloned, "origin/main") == ("trunk",)


def test_else_for_the_one_of_its_name(cloned: Path) -> None:
    assert branches_of(cloned, "team/fork/main") == ("main",)
    assert branches_of(cloned, "team/fork/feature") == ()
    git(cloned, "branch", "-q", "--unset-upstream")
    assert branches_of(cloned, "origin/main") == ("main",)


def test_of_several_that_follow_it_the_one_of_its_name(cloned: Path) -> None:
    git(cloned, "branch", "-q", "--track", "mine", "origin/main")
    assert branches_of(cloned, "origin/main") == ("main",)
    git(cloned, "branch", "-q", "-m", "main", "trunk")
    assert branches_of(cloned, "origin/main") == ("mine", "trunk")


def test_a_tag_and_a_commit_are_no_branches_and_what_is_gone_does_not_exist(cloned: Path) -> None:
    git(cloned, "tag", "v1")
    repository = find_repository(cloned)
    for name in ("v1", "main~0", git(cloned, "rev-parse", "HEAD")):
        found = find_base(repository, name)
        assert (found.exists, found.is_branch, found.branches) == (True, False, ())
    for name in ("nope", "origin/nope", "--all", "0" * 40 + "^{commit}"):
        assert not find_base(repository, name).exists


def test_a_base_carries_its_line_of_work_under_each_of_its_names(cloned: Path) -> None:
    repository = find_repository(cloned)
    both = {"refs/heads/main", "refs/remotes/origin/main"}
    assert set(find_base(repository, "origin/main").refs) == both
    assert set(find_base(repository, "main").refs) == both


def test_work_lands_on_the_branch_that_follows_the_base(cloned: Path) -> None:
    assert "refs/heads/main" in landing_targets(find_repository(cloned), "origin/main")


def test_a_short_name_is_looked_for_on_every_remote(cloned: Path) -> None:
    repository = find_repository(cloned)
    here, there = RemoteBranch("origin/feature", "feature"), RemoteBranch("team/fork/feature", "feature")
    assert set(remote_branches_of(repository, "feature")) == {here, there}
    assert remote_branches_of(repository, "origin/feature") == [here]
    assert remote_branches_of(repository, "team/fork/feature") == [there]
    assert here.ref == "refs/remotes/origin/feature"
    for name in ("nope", "origin/nope", "origin", "-x", "a b", ""):
        assert remote_branches_of(repository, name) == []
    git(cloned, "config", "checkout.defaultRemote", "team/fork")
    assert remote_branches_of(repository, "feature") == [there]
