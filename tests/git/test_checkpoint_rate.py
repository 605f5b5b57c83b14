"""A large file that changes all the time is in checkpoints, and not each time anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_farm.farm.farm import open_farm
from agent_farm.git import checkpoint_rate
from agent_farm.git.checkout import linked_tree
from agent_farm.git.checkpoint_making import TreeContents, hold_worktree
from tests.gitrepo import git

LARGE = checkpoint_rate.LARGE
Look = Callable[[], dict[str, bytes]]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1_800_000_000.0]
    monkeypatch.setattr("agent_farm.git.checkpoint_rate.time.time", lambda: now[0])
    monkeypatch.setattr(checkpoint_rate, "FOR_CHANGED", 4 * LARGE)
    monkeypatch.setattr(checkpoint_rate, "FOR_NEW", 8 * LARGE)
    return now


@pytest.fixture
def tree(repo: Path) -> Path:
    place = repo / ".builders/x"
    git(repo, "worktree", "add", "-q", "-b", "builder/x", str(place))
    return place


def look(repo: Path, tree: Path) -> TreeContents:
    return hold_worktree(linked_tree(open_farm(repo).repository, tree), most_bytes=10**8)


def write(path: Path, count: int, size: int = LARGE) -> bytes:
    content = os.urandom(16) + bytes([count % 256]) * (size - 16)
    path.write_bytes(content)
    return content


def blob(repo: Path, held: TreeContents, name: str) -> str:
    return git(repo, "rev-parse", f"{held.work}:{name}")


def test_one_that_changes_all_the_time_is_bounded(repo: Path, tree: Path, clock: list[float]) -> None:
    stored = set[str]()
    for count in range(200):
        write(tree / "log.bin", count)
        (tree / "small.txt").write_text(f"{count}\n")
        held = look(repo, tree)
        stored.add(blob(repo, held, "log.bin"))
        assert git(repo, "show", f"{held.work}:small.txt") == str(count), "what is small never waits"
        clock[0] += 2
    most = 4 + 200 * 2 * checkpoint_rate.RATE // LARGE + 1
    assert 4 < len(stored) <= most
    clock[0] += 3600
    last = write(tree / "log.bin", 7)
    assert git(repo, "cat-file", "-s", blob(repo, look(repo, tree), "log.bin")) == str(len(last))
    assert git(repo, "hash-object", str(tree / "log.bin")) == blob(repo, look(repo, tree), "log.bin")


def test_it_stays_as_it_was_where_the_index_begins_anew(repo: Path, tree: Path, clock: list[float]) -> None:
    for count in range(6):
        write(tree / "log.bin", count)
        held = look(repo, tree)
    before = blob(repo, held, "log.bin")
    (tree / "staged.txt").write_text("staged\n")
    git(tree, "add", "staged.txt")
    write(tree / "log.bin", 99)
    held = look(repo, tree)
    assert blob(repo, held, "log.bin") == before
    assert held.left_out == ()
    (tree / "log.bin").unlink()
    assert "log.bin" not in git(repo, "ls-tree", "--name-only", look(repo, tree).work)


def test_names_that_are_always_new_are_bounded_and_named(repo: Path, tree: Path, clock: list[float]) -> None:
    for count in range(12):
        write(tree / f"log.{count:02}", count)
        held = look(repo, tree)
    names = git(repo, "ls-tree", "--name-only", held.work).splitlines()
    assert [name for name in names if name.startswith("log.")] == [f"log.{count:02}" for count in range(8)]
    assert held.left_out == tuple(f"log.{count:02}" for count in range(8, 12))


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        '{"version": 99}',
        '{"version": 1, "debt": Infinity, "at": NaN}',
        '{"version": 1, "files": {"log.bin": {"mark": "", "mode": "160000", "blob": "x", "at": 0}}}',
        '{"version": 1, "debt": 1e300, "at": 1e300, "files": {"log.bin": {"mark": "", "mode": "100644",'
        ' "at": 0, "blob": "1111111111111111111111111111111111111111"}}}',
    ],
)
def test_what_a_builder_writes_there_ends_no_checkpoint(
    repo: Path, tree: Path, clock: list[float], content: str
) -> None:
    (repo / ".git/worktrees/x/agent-farm-checkpoint-large").write_text(content)
    write(tree / "log.bin", 1)
    (tree / "small.txt").write_text("here\n")
    assert git(repo, "show", f"{look(repo, tree).work}:small.txt") == "here"
