"""`.agent-farm` and `.builders` that a repository or another user put there are refused before a read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_farm.errors import ForeignFile
from agent_farm.git.own_places import require_own_places
from agent_farm.git.repository import find_repository
from tests.gitrepo import commit_files, git, make_repo, write_files

PLACES = (".agent-farm", ".builders")


def refused(repo: Path) -> str:
    with pytest.raises(ForeignFile) as caught:
        require_own_places(repo, repo / ".git")
    with pytest.raises(ForeignFile):
        find_repository(repo)
    return f"{caught.value.what} | {caught.value.why} | {caught.value.hint}"


def many(repo: Path) -> None:
    """Names on both sides of ours, some of which only look like them."""
    names = [
        "+a",
        "-b",
        ".a",
        ".agent",
        ".agent-farm-notes/x",
        ".agent-farm.md",
        ".builders-old/x",
        ".builder",
        "src/a",
    ]
    names += ["docs/.agent-farm/x", ".builders.txt", ".buildersx", ".github/w.yml", "x" * 200]
    write_files(repo, dict.fromkeys(names, "x\n"))
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "many")


def as_it_is(repo: Path) -> None:
    pass


def version_3(repo: Path) -> None:
    git(
        repo,
        "add",
        "-N",
        "-f",
        *[os.fspath(path) for path in (repo / ".a-late",) if not path.write_text("x")],
    )


def version_4(repo: Path) -> None:
    git(repo, "update-index", "--index-version", "4")


def split(repo: Path) -> None:
    git(repo, "update-index", "--split-index")


def sparse(repo: Path) -> None:
    git(repo, "sparse-checkout", "set", "--sparse-index", "src")


INDEXES = (as_it_is, version_3, version_4, split, sparse)


@pytest.mark.parametrize("turn", INDEXES)
@pytest.mark.parametrize("place", PLACES)
def test_what_git_tracks(repo: Path, place: str, turn: Callable[[Path], None]) -> None:
    many(repo)
    turn(repo)
    (repo / place).mkdir(exist_ok=True)
    require_own_places(repo, repo / ".git")
    write_files(repo, {f"{place}/planted": "x\n"})
    git(repo, "add", "-f", "--sparse", f"{place}/planted")
    words = refused(repo)
    assert f"{repo / place} is tracked by git" in words
    assert f"{place}/planted" in words
    git(repo, "rm", "-rq", "--sparse", "--cached", "--", place)
    require_own_places(repo, repo / ".git")


def test_an_index_that_is_read_in_parts(repo: Path) -> None:
    write_files(repo, {f"!{number:05}-{'x' * 80}": "" for number in range(3000)})
    (repo / ".builders").mkdir()
    git(repo, "add", "-A")
    assert (repo / ".git/index").stat().st_size > 1 << 18
    require_own_places(repo, repo / ".git")
    commit_files(repo, {".builders/x": ""})
    assert "tracked by git" in refused(repo)


def test_a_commit_that_comes_later(repo: Path, tmp_path: Path) -> None:
    """git replaces ignored files without a word, so a verdict of yesterday says nothing."""
    (repo / ".git/info/exclude").write_text("/.agent-farm/\n")
    write_files(repo, {".agent-farm/architect.token": "ours\n"})
    find_repository(repo)
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", os.fspath(repo), os.fspath(other))
    write_files(other, {".agent-farm/architect.token": "theirs\n"})
    git(other, "add", "-f", ".agent-farm")
    git(other, "commit", "-qm", "nice change")
    git(repo, "pull", "-q", os.fspath(other), "main")
    assert (repo / ".agent-farm/architect.token").read_text() == "theirs\n"
    assert "git rm -r -- .agent-farm" in refused(repo).replace(f"-C {repo} ", "")
    git(repo, "rm", "-rq", "--", ".agent-farm")
    find_repository(repo)


@pytest.mark.parametrize("place", PLACES)
def test_a_link(repo: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (repo / place).symlink_to("../elsewhere")
    words = refused(repo)
    assert "is a symbolic link" in words
    assert "../elsewhere" in words
    git(repo, "add", "-f", place)
    assert place in refused(repo)


def test_a_link_below_the_state_directory(repo: Path, tmp_path: Path) -> None:
    """af deletes what is left in `trials`, and what is old in `checks`: never somewhere else."""
    (repo / ".agent-farm").mkdir()
    (repo / ".agent-farm/trials").symlink_to(tmp_path)
    words = refused(repo)
    assert f"{repo}/.agent-farm/trials is a symbolic link" in words
    assert f"rm {repo}/.agent-farm/trials" in words


@pytest.mark.parametrize("place", PLACES)
def test_a_file_in_its_place(repo: Path, place: str) -> None:
    (repo / place).write_text("")
    assert "is not a directory" in refused(repo)


@pytest.mark.parametrize("place", PLACES)
def test_one_that_everybody_may_write(repo: Path, place: str) -> None:
    (repo / place).mkdir()
    (repo / place).chmod(0o777)
    words = refused(repo)
    assert "can be written by other users" in words
    assert f"chmod go-w {repo / place}" in words
    (repo / place).chmod(0o755)
    find_repository(repo)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
@pytest.mark.parametrize("place", PLACES)
def test_one_of_another_user(repo: Path, place: str) -> None:
    (repo / place).mkdir()
    os.chown(repo / place, 12345, 12345)
    assert "belongs to user 12345" in refused(repo)


def test_it_starts_no_process(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many(repo)
    for place in PLACES:
        (repo / place).mkdir()
    monkeypatch.setenv("PATH", "/nonexistent")
    require_own_places(repo, repo / ".git")


def test_a_repository_without_an_index_yet(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "new")
    (repo / ".git/index").unlink()
    (repo / ".agent-farm").mkdir()
    require_own_places(repo, repo / ".git")
