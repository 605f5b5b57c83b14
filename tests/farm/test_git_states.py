"""Of builders that do nothing, git is asked in turn; what tells of a change is looked at each time."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_farm.farm import git_state, unchanged, whole_look
from agent_farm.farm.farm import open_farm
from agent_farm.farm.git_state import GitState
from agent_farm.git import changes
from agent_farm.git.changes import TreeState
from agent_farm.git.checkout import BuilderTree
from tests.farm.conftest import Spawned
from tests.gitrepo import commit_files, git

Spawn = Callable[..., Spawned]
Read = Callable[[], dict[str, GitState]]


@pytest.fixture
def two(spawn: Spawn, repo: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Spawned, Spawned, Read]:
    """Two that do nothing, of which one is asked at a time, and were read: the first of them longer ago."""
    commit_files(repo, {"below/file.txt": "1\n"}, "a file")
    first, second = spawn("--shell"), spawn("--shell")
    monkeypatch.setattr(git_state, "BOUND_SECONDS", 60.0)
    monkeypatch.setattr(unchanged, "_AGAIN", 1)
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


def test_one_whose_worktree_is_gone_does_not_take_the_turn_of_others(
    two: tuple[Spawned, Spawned, Read], repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, read = two
    monkeypatch.setattr(git_state, "_MOST_ASKED", 1)
    (repo / ".agent-farm/git-states.json").unlink()
    first.worktree.rename(tmp_path / "elsewhere")
    states = [read() for _ in range(2)]
    assert any(first.id in some and some[first.id].problem for some in states)
    assert any(second.id in some for some in states)


Asked = list[str]


@pytest.fixture
def quiet(
    spawn: Spawn, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Spawned, Callable[[], GitState], Asked]:
    """One that does nothing and was read, how to read it again, and where git was asked since."""
    commit_files(repo, {"below/file.txt": "1\n", ".gitignore": "*.log\n"}, "files")
    builder = spawn("--shell")
    asked = Asked()

    def tree_state(tree: BuilderTree) -> TreeState:
        asked.append(tree.path.name)
        return changes.tree_state(tree)

    monkeypatch.setattr(git_state, "tree_state", tree_state)
    monkeypatch.setattr(git_state, "BOUND_SECONDS", 60.0)
    monkeypatch.setattr(whole_look, "_YOUNG_NS", 0)
    farm = open_farm(repo)

    def read() -> GitState:
        return git_state.git_states(farm, list(farm.records().values()), still=[builder.id])[builder.id]

    read()
    asked.clear()
    return builder, read, asked


def test_a_small_worktree_that_looks_the_same_is_known_without_git(
    quiet: tuple[Spawned, Callable[[], GitState], Asked],
) -> None:
    _, read, asked = quiet
    before = read()
    again = read()
    assert asked == []
    assert again.at > before.at
    assert again.asked == before.asked < before.at


def exclude(builder: Spawned) -> None:
    (builder.worktree / "x.tmp").write_text("")
    file = builder.worktree.parents[1] / ".git/info/exclude"
    file.write_text(file.read_text() + "*.tmp\n")


def swap(builder: Spawned) -> None:
    one, other, third = (builder.worktree / name for name in ("below/file.txt", "below/2", "below/3"))
    other.write_text("2\n")
    one.rename(third)
    other.rename(one)
    third.unlink()


def keep_time(builder: Spawned) -> None:
    file = builder.worktree / "below/file.txt"
    times = file.stat()
    file.write_text("2\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


CHANGES: dict[str, tuple[Callable[[Spawned], object], tuple[int, int]]] = {
    "edited": (lambda one: (one.worktree / "below/file.txt").write_text("2\n"), (1, 0)),
    "edited, its time set back": (keep_time, (1, 0)),
    "made below": (lambda one: (one.worktree / "below/new").write_text(""), (0, 1)),
    "ignored": (lambda one: (one.worktree / "below/x.log").write_text(""), (0, 0)),
    "deleted": (lambda one: (one.worktree / "below/file.txt").unlink(), (1, 0)),
    "executable": (lambda one: (one.worktree / "below/file.txt").chmod(0o755), (1, 0)),
    "exchanged": (swap, (1, 0)),
    "excluded": (exclude, (0, 0)),
    "a link": (lambda one: (one.worktree / "below/link").symlink_to("/"), (0, 1)),
    "a pipe": (lambda one: os.mkfifo(one.worktree / "below/pipe"), (0, 0)),
    "a repository": (lambda one: git(one.worktree, "init", "-q", "below/own"), (0, 1)),
}


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES.keys())
def test_whatever_changes_in_one_has_git_asked(
    quiet: tuple[Spawned, Callable[[], GitState], Asked],
    change: Callable[[Spawned], object],
    expected: tuple[int, int],
) -> None:
    builder, read, asked = quiet
    read()
    change(builder)
    state = read()
    assert (state.dirty, state.untracked) == expected
    assert asked == [builder.id]


def test_settings_count(
    quiet: tuple[Spawned, Callable[[], GitState], Asked], tmp_path: Path, repo: Path
) -> None:
    """Those that name a file, by that file; where further ones are included, git is asked."""
    builder, read, asked = quiet
    (builder.worktree / "below/x.tmp").write_text("")
    ignored = tmp_path / "ignored"
    git(repo, "config", "core.excludesFile", str(ignored))
    assert [read().untracked for _ in range(2)] == [1, 1]
    ignored.write_text("*.tmp\n")
    assert [read().untracked for _ in range(2)] == [0, 0]
    assert asked == [builder.id] * 2
    git(repo, "config", "include.path", str(tmp_path / "more"))
    assert [read().untracked for _ in range(2)] == [0, 0]
    assert asked == [builder.id] * 4


def test_where_a_look_could_overlook_something_git_is_asked(
    quiet: tuple[Spawned, Callable[[], GitState], Asked], monkeypatch: pytest.MonkeyPatch
) -> None:
    builder, read, asked = quiet
    read()
    monkeypatch.setattr(unchanged, "_HOLDS_SECONDS", 0.0)
    read()
    assert asked == [builder.id]
    monkeypatch.setattr(whole_look, "_MOST_FILES", 1)
    settings = whole_look.settings_look(builder.worktree.parents[1] / ".git")
    place, admin = str(builder.worktree), str(builder.worktree.parents[1] / ".git/worktrees" / builder.id)
    assert settings
    assert whole_look.whole_look(place, admin, settings) == whole_look.TOO_LARGE
    assert whole_look.whole_look(place, admin, "") == ""
    monkeypatch.setattr(whole_look, "_MOST_FILES", 100)
    monkeypatch.setattr(whole_look, "_YOUNG_NS", 2_000_000_000)
    (builder.worktree / "below/file.txt").write_text("young")
    assert whole_look.whole_look(place, admin, settings) == ""
