"""`worktree.uncommitted`: a new builder gets what is uncommitted, and the checkout it comes from keeps it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.belongings import files_of
from tests.farm.traces import traces
from tests.gitrepo import commit_files, git, write_files


@pytest.fixture
def carrying(repo: Path, af: Af) -> Path:
    commit_files(repo, {"deleted.txt": "1\n", "mode.sh": "#!/bin/sh\n", ".gitignore": "*.local\n"})
    assert af("config", "set", "worktree.uncommitted", "true").returncode == 0
    commit_files(repo, {"agent-farm.toml": (repo / "agent-farm.toml").read_text()})
    return repo


def spawn(af: Af, *words: str, cwd: Path | None = None) -> Path:
    done = af("spawn", "--shell", "--runtime", "demo", "--json", *words, cwd=cwd)
    assert done.returncode == 0, done.stdout
    return Path(json.loads(done.stdout)["builder"]["worktree"])


def make_changes(checkout: Path) -> str:
    write_files(
        checkout, {"README.md": "changed\r\n", "staged.txt": "staged\n", "new/deep.txt": "untracked\n"}
    )
    git(checkout, "add", "staged.txt")
    write_files(checkout, {"staged.txt": "staged, then changed\n"})
    (checkout / "deleted.txt").unlink()
    (checkout / "mode.sh").chmod(0o755)
    (checkout / "binary").write_bytes(bytes(range(256)))
    os.symlink("nowhere", checkout / "link")
    return git(checkout, "status", "--porcelain")


def test_everything_uncommitted_is_in_both_places(carrying: Path, af: Af) -> None:
    status = make_changes(carrying)
    before = files_of(carrying)
    worktree = spawn(af)
    assert git(worktree, "status", "--porcelain") == status
    assert git(worktree, "diff", "--cached") == git(carrying, "diff", "--cached")
    here = {
        name: value for name, value in before.items() if not name.startswith((".builders", ".agent-farm"))
    }
    assert files_of(worktree) == here
    assert git(carrying, "status", "--porcelain") == status
    assert {name: files_of(carrying)[name] for name in here} == here
    assert git(carrying, "stash", "list") == ""


def test_ignored_files_are_not_carried(carrying: Path, af: Af) -> None:
    write_files(carrying, {"key.local": "ignored\n", "README.md": "changed\n"})
    worktree = spawn(af)
    assert not (worktree / "key.local").exists()
    assert (worktree / "README.md").read_text() == "changed\n"


def test_a_clean_checkout_carries_nothing(carrying: Path, af: Af) -> None:
    assert git(spawn(af), "status", "--porcelain") == ""


def test_off_by_default(repo: Path, af: Af) -> None:
    write_files(repo, {"README.md": "changed\n"})
    assert git(spawn(af), "status", "--porcelain") == ""


def test_from_a_builders_own_worktree(carrying: Path, af: Af) -> None:
    """The current checkout is meant, not the main one."""
    first = spawn(af)
    write_files(first, {"README.md": "the builder's\n"})
    write_files(carrying, {"README.md": "the person's\n"})
    second = spawn(af, cwd=first)
    assert second.parent == first.parent
    assert (second / "README.md").read_text() == "the builder's\n"


def test_another_base_is_refused_and_makes_nothing(carrying: Path, af: Af) -> None:
    write_files(carrying, {"README.md": "changed\n"})
    done = af("spawn", "--shell", "--runtime", "demo", "--base", "HEAD~1")
    assert done.returncode == 2
    assert "--base" in done.stderr
    assert traces(carrying).left() == {}


def test_it_counts_as_the_builders_work(carrying: Path, af: Af) -> None:
    """Pruning does not take it for something that exists elsewhere."""
    write_files(carrying, {"new.txt": "untracked\n"})
    worktree = spawn(af)
    assert af("stop", worktree.name).returncode == 0
    done = af("prune", worktree.name)
    assert done.returncode == 4
    assert "new.txt" in done.stderr
