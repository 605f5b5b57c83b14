"""Of builders that do nothing, git is asked in turn; what tells of a change is looked at each time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_farm.farm import git_state
from agent_farm.farm.farm import open_farm
from agent_farm.farm.git_state import GitState
from tests.farm.conftest import Spawned
from tests.gitrepo import commit_files

Spawn = Callable[..., Spawned]
Read = Callable[[], dict[str, GitState]]


@pytest.fixture
def two(spawn: Spawn, repo: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Spawned, Spawned, Read]:
    """Two that do nothing, of which one is asked at a time, and were read: the first of them longer ago."""
    commit_files(repo, {"below/file.txt": "1\n"}, "a file")
    first, second = spawn("--shell"), spawn("--shell")
    monkeypatch.setattr(git_state, "BOUND_SECONDS", 60.0)
    monkeypatch.setattr(git_state, "_ASKED_AGAIN", 1)
    farm = open_farm(repo)

    def read() -> dict[str, GitState]:
        records = list(farm.records().values())
        return git_state.git_states(farm, records, still=[record.id for record in records])

    read()
    if read()[first.id].at > read()[second.id].at:
        read()
    return first, second, read


def test_each_has_its_turn(two: tuple[Spawned, Spawned, Read]) -> None:
    first, second, read = two
    for builder in (first, second):
        (builder.worktree / "below/file.txt").write_text("2\n")
    seen = [read() for _ in range(2)]
    assert sorted((states[first.id].dirty, states[second.id].dirty) for states in seen)[0] in [(0, 1), (1, 0)]
    assert (seen[1][first.id].dirty, seen[1][second.id].dirty) == (1, 1)


def test_what_a_look_tells_is_asked_at_once(two: tuple[Spawned, Spawned, Read]) -> None:
    first, second, read = two
    for builder in (first, second):
        (builder.worktree / "new.txt").write_text("new\n")
    states = read()
    assert (states[first.id].untracked, states[second.id].untracked) == (1, 1)
    for builder in (first, second):
        commit_files(builder.worktree, {"new.txt": "newer\n"}, "work")
    states = read()
    assert (states[first.id].ahead, states[second.id].ahead) == (1, 1)


def test_what_is_on_branches_is_as_of_now(two: tuple[Spawned, Spawned, Read], repo: Path) -> None:
    first, second, read = two
    before = read()
    commit_files(repo, {"theirs.txt": "x\n"}, "theirs")
    states = read()
    assert (states[first.id].behind, states[second.id].behind) == (1, 1)
    assert [states[id].at == before[id].at for id in (first.id, second.id)].count(True) == 1


def test_one_that_works_is_always_asked(two: tuple[Spawned, Spawned, Read], repo: Path) -> None:
    first, second, _ = two
    for builder in (first, second):
        (builder.worktree / "below/file.txt").write_text("2\n")
    farm = open_farm(repo)
    states = git_state.git_states(farm, list(farm.records().values()), still=[])
    assert (states[first.id].dirty, states[second.id].dirty) == (1, 1)


def test_of_more_than_can_be_asked_each_has_its_turn(
    two: tuple[Spawned, Spawned, Read], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, read = two
    monkeypatch.setattr(git_state, "_MOST_ASKED", 1)
    for builder in (first, second):
        (builder.worktree / "new.txt").write_text("new\n")
    states = read()
    assert sorted((states[first.id].untracked, states[second.id].untracked)) == [0, 1]
    states = read()
    assert (states[first.id].untracked, states[second.id].untracked) == (1, 1)
