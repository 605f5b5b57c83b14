"""What git cannot see, or `af` cannot move, is never removed by guessing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.farm import unprivileged
from tests.farm.conftest import Spawned
from tests.gitrepo import commit_files, git, write_files

pytestmark = pytest.mark.slow

Spawn = Callable[..., Spawned]


@pytest.fixture
def dark(spawn: Spawn) -> Iterator[Spawned]:
    """A builder that has landed, with an untracked directory that nobody may read."""
    builder = spawn("--shell").stop()
    write_files(builder.worktree, {"data/x": "precious\n"})
    (builder.worktree / "data").chmod(0)
    yield builder
    (builder.worktree / "data").chmod(0o700)


@pytest.mark.parametrize("flags", [(), ("--discard-changes", "--discard-commits")])
def test_a_directory_that_git_cannot_read_stands_against_removing(dark: Spawned, flags: tuple[str]) -> None:
    af = unprivileged.make(dark.repo)

    done = af("prune", dark.id, *flags)

    assert done.returncode == 4, done.stdout + done.stderr
    assert "could not open directory 'data/': Permission denied" in done.stderr
    assert f"{dark.id} stays" in af("prune").stderr
    (dark.worktree / "data").chmod(0o700)
    assert (dark.worktree / "data/x").read_text() == "precious\n"


def test_it_stands_against_removing_one_that_would_be_stopped_first(dark: Spawned) -> None:
    done = unprivileged.make(dark.repo)("prune", "--stop", dark.id, "--json")
    assert done.returncode == 4, done.stdout + done.stderr


@pytest.fixture
def foreign(spawn: Spawn, repo: Path) -> Spawned:
    """A builder that has landed, with an ignored directory of another user's."""
    commit_files(repo, {".gitignore": "build/\n*.o\n", "lib/a.c": "int a;\n"})
    builder = spawn("--shell").stop()
    write_files(builder.worktree, {"build/out/volume": "theirs\n"})
    unprivileged.give_away(builder.worktree / "build")
    return builder


def whole(builder: Spawned) -> None:
    assert (builder.worktree / "build/out/volume").read_text() == "theirs\n"
    assert git(builder.worktree, "status", "--porcelain") == ""
    assert builder.state == "stopped"


def test_files_of_another_user_break_no_removal(foreign: Spawned) -> None:
    """Refused whole, or removed whole and restorable: never something between."""
    af = unprivileged.make(foreign.repo)
    done = af("prune", foreign.id)
    if done.returncode:
        assert done.returncode == 4, done.stderr
    else:
        restored = af("restore", foreign.id)
        assert restored.returncode == 0, restored.stderr
    whole(foreign)
    assert af("doctor", "--fix").returncode == 0
    whole(foreign)


def test_an_ignored_file_in_a_read_only_directory_comes_back(spawn: Spawn, repo: Path) -> None:
    commit_files(repo, {".gitignore": "*.o\n", "lib/a.c": "int a;\n"})
    builder = spawn("--shell").stop()
    write_files(builder.worktree, {"lib/a.o": "by hand\n"})
    (builder.worktree / "lib").chmod(0o555)
    af = unprivileged.make(repo)

    removed = af("prune", builder.id)
    assert removed.returncode == 0, removed.stderr
    restored = af("restore", builder.id)

    assert restored.returncode == 0, restored.stderr
    assert (builder.worktree / "lib/a.o").read_text() == "by hand\n"
    (builder.worktree / "lib").chmod(0o755)
