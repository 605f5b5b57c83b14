"""What a turn made, told from what was there before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.runtimes.executables.session_adapter.picture import take_picture
from tests.gitrepo import git


@pytest.fixture
def tree(repo: Path) -> Path:
    for name in ("kept.txt", "edited.txt", "dirty.txt", "gone.txt", "committed.txt"):
        (repo / name).write_text(f"{name}\n")
    (repo / ".gitignore").write_text("*.log\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "Files")
    (repo / "dirty.txt").write_text("dirty before\n")
    (repo / "new before.txt").write_text("new before\n")
    return repo


def made(tree: Path, place: Path | None = None, apart_from: tuple[Path, ...] = ()) -> list[str]:
    picture = take_picture(place or tree)
    assert picture
    (tree / "edited.txt").write_text("edited\n")
    (tree / "gone.txt").unlink()
    (tree / "sub").mkdir(exist_ok=True)
    (tree / "sub" / "nëw\n.txt").write_text("new\n")
    (tree / "link").symlink_to("nowhere")
    (tree / "build.log").write_text("ignored\n")
    (tree / "committed.txt").write_text("committed\n")
    git(tree, "add", "committed.txt", "new before.txt")
    git(tree, "commit", "-qm", "The turn's own")
    return picture.made_since(apart_from)


MADE = ["committed.txt", "edited.txt", "link", "sub/nëw\n.txt"]


def test_it_is_what_the_turn_wrote_committed_or_not(tree: Path) -> None:
    assert made(tree) == MADE


def test_from_a_directory_below_it_is_the_same(tree: Path) -> None:
    (tree / "sub").mkdir()
    assert made(tree, tree / "sub") == MADE


def test_what_was_changed_before_counts_once_it_is_changed_again(tree: Path) -> None:
    picture = take_picture(tree)
    assert picture
    assert picture.made_since([]) == []
    (tree / "dirty.txt").write_text("dirty again\n")
    (tree / "new before.txt").chmod(0o755)
    assert picture.made_since([]) == ["dirty.txt", "new before.txt"]


def test_brief_state_and_the_farms_own_files_do_not_count(tree: Path) -> None:
    (tree / ".agent-farm").mkdir()
    (tree / ".agent-farm" / "state.json").write_text("{}")
    assert made(tree, apart_from=(tree / "sub" / ".." / "edited.txt",)) == [
        n for n in MADE if n != "edited.txt"
    ]


def test_before_the_first_commit(tmp_path: Path, home: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    (empty / "before.txt").write_text("before")
    picture = take_picture(empty)
    assert picture
    (empty / "after.txt").write_text("after")
    git(empty, "add", ".")
    git(empty, "commit", "-qm", "First")
    assert picture.made_since([]) == ["after.txt"]


def test_outside_a_repository_there_is_none(tmp_path: Path) -> None:
    assert take_picture(tmp_path) is None


def test_a_git_hooks_variables_do_not_lead_elsewhere(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    picture = take_picture(tree)
    assert picture
    assert picture.top == tree.resolve()
    (tree / "more.txt").write_text("more")
    assert picture.made_since([]) == ["more.txt"]


def test_the_agents_own_git_finds_no_lock_of_ours(tree: Path) -> None:
    (tree / ".git" / "index.lock").touch()
    (tree / "kept.txt").touch()
    picture = take_picture(tree)
    assert picture
    assert picture.made_since([]) == []
