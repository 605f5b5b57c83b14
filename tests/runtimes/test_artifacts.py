"""What a session made, told from what was there before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.runtimes.executables.artifacts import commit_of, differing_files
from tests.gitrepo import git


@pytest.fixture
def tree(repo: Path) -> Path:
    for name in ("kept.txt", "edited.txt", "dirty.txt", "gone.txt", "committed.txt"):
        (repo / name).write_text(f"{name}\n")
    (repo / ".gitignore").write_text("*.log\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "Files")
    return repo


def made(tree: Path, place: Path | None = None, apart_from: tuple[Path, ...] = ()) -> list[str]:
    base = commit_of(place or tree)
    assert base
    (tree / "edited.txt").write_text("edited\n")
    (tree / "gone.txt").unlink()
    (tree / "sub").mkdir(exist_ok=True)
    (tree / "sub" / "nëw\n.txt").write_text("new\n")
    (tree / "link").symlink_to("nowhere")
    (tree / "build.log").write_text("ignored\n")
    (tree / "committed.txt").write_text("committed\n")
    git(tree, "add", "committed.txt")
    git(tree, "commit", "-qm", "The turn's own")
    return differing_files(place or tree, base, apart_from)


MADE = ["committed.txt", "edited.txt", "link", "sub/nëw\n.txt"]


def test_it_is_what_the_turn_wrote_committed_or_not(tree: Path) -> None:
    assert made(tree) == MADE


def test_from_a_directory_below_it_is_the_same(tree: Path) -> None:
    (tree / "sub").mkdir()
    assert made(tree, tree / "sub") == MADE


def test_brief_state_and_the_farms_own_files_do_not_count(tree: Path) -> None:
    (tree / ".agent-farm").mkdir()
    (tree / ".agent-farm" / "state.json").write_text("{}")
    apart = (tree / "sub" / ".." / "edited.txt",)
    assert made(tree, apart_from=apart) == [name for name in MADE if name != "edited.txt"]


def test_before_the_first_commit(tmp_path: Path, home: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    base = commit_of(empty)
    assert base
    (empty / "after.txt").write_text("after")
    git(empty, "add", ".")
    git(empty, "commit", "-qm", "First")
    assert differing_files(empty, base) == ["after.txt"]


def test_outside_a_repository_there_is_none(tmp_path: Path) -> None:
    assert commit_of(tmp_path) is None


def test_a_git_hooks_variables_do_not_lead_elsewhere(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    base = commit_of(tree)
    assert base
    (tree / "more.txt").write_text("more")
    assert differing_files(tree, base) == ["more.txt"]


def test_the_agents_own_git_finds_no_lock_of_ours(tree: Path) -> None:
    (tree / ".git" / "index.lock").touch()
    (tree / "kept.txt").touch()
    base = commit_of(tree)
    assert base
    assert differing_files(tree, base) == []
