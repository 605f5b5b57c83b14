"""`af status` says what has landed, as `af prune` sees it, and what is not known."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_farm.git.landed_answers import LandedAnswer, LandedQuestion, landed_answers
from agent_farm.git.repository import find_repository
from tests.conftest import Af
from tests.farm.conftest import Spawned, status_of
from tests.gitrepo import commit_files, git

Spawn = Callable[..., Spawned]


def landed(builder: Spawned) -> object:
    return status_of(builder.af, builder.id)["git"]["landed"]


def table(builder: Spawned) -> str:
    return builder.af("status", builder.id).stdout


@pytest.mark.parametrize("squash", [True, False])
def test_what_landed_elsewhere_is_marked(spawn: Spawn, repo: Path, squash: bool) -> None:
    builder = spawn("--shell")
    assert landed(builder) is True
    assert "landed" not in table(builder)
    commit_files(builder.worktree, {"a.txt": "1\n"}, "one")
    commit_files(builder.worktree, {"b.txt": "1\n"}, "two")
    assert landed(builder) is False
    commit_files(repo, {"theirs.txt": "x\n"}, "theirs")
    assert landed(builder) is False

    git(repo, "merge", "-q", *(["--squash"] if squash else ["-m", "merge"]), builder.branch)
    if squash:
        git(repo, "commit", "-q", "-m", "squashed")
    assert landed(builder) is True
    assert ("+2 -2 landed" if squash else "-2 landed") in table(builder)

    (builder.worktree / "a.txt").write_text("uncommitted\n")
    assert "landed ~1" in table(builder)
    commit_files(builder.worktree, {"a.txt": "2\n"}, "three")
    assert landed(builder) is False
    assert "landed" not in table(builder)


def test_a_branch_on_a_remote_has_landed(spawn: Spawn, repo: Path) -> None:
    builder = spawn("--shell")
    tip = commit_files(builder.worktree, {"a.txt": "1\n"}, "one")
    git(repo, "update-ref", "refs/remotes/origin/work", tip)
    assert landed(builder) is True
    git(repo, "update-ref", "-d", "refs/remotes/origin/work")
    assert landed(builder) is False


def test_an_answer_is_remembered_until_a_commit_is_another(spawn: Spawn, repo: Path) -> None:
    tip, target = forked(repo)
    repository = find_repository(repo)
    questions = {"one": LandedQuestion((tip,), (target,))}

    def read(remembered: dict[str, LandedAnswer], seconds: float) -> LandedAnswer | None:
        return landed_answers(repository, questions, remembered, seconds=seconds).get("one")

    asked = read({}, 60)
    assert asked is not None
    assert asked.landed is False
    # an answer that only the memory can have given
    known = LandedAnswer(True, asked.asked_of, 1.0)
    assert read({"one": known}, 60) == known
    assert read({"one": LandedAnswer(True, "others", 1.0)}, 60) != known
    assert read({}, 0) is None


def forked(repo: Path) -> tuple[str, str]:
    git(repo, "checkout", "-q", "-b", "work")
    tip = commit_files(repo, {"a.txt": "1\n"}, "one")
    git(repo, "checkout", "-q", "main")
    return tip, commit_files(repo, {"theirs.txt": "x\n"}, "theirs")


def test_the_memory_of_an_earlier_version_is_asked_again(spawn: Spawn, repo: Path) -> None:
    builder = spawn("--shell")
    commit_files(builder.worktree, {"a.txt": "1\n"}, "one")
    old = {"dirty": 0, "untracked": 0, "ahead": 1, "behind": 0, "at": 0.0}
    (repo / ".agent-farm/git-states.json").write_text(json.dumps({builder.id: old}))
    assert landed(builder) is False


def test_status_json_has_only_what_is_documented(spawn: Spawn, af: Af) -> None:
    builder = spawn("--shell")
    keys = {
        *("dirty", "untracked", "ahead", "behind", "missing", "landed", "has_commits", "at"),
        *("branch", "commit", "operation", "problem", "reason", "base_follows", "base_behind"),
    }
    assert status_of(af, builder.id)["git"].keys() == keys
