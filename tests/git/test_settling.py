"""Every kind of change is taken back, or to its end, and nothing that somebody wrote meanwhile is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_farm.errors import DamagedFile
from agent_farm.git.checkout import Checkout, main_checkout
from agent_farm.git.index_lock import index_lock
from agent_farm.git.repository import find_repository
from agent_farm.git.settling import Move, next_index, read_move, settle_interrupted_move, write_move
from tests.gitrepo import commit_files, git, make_repo, write_files

ODD = 'odd "name"\nof\ttwo lines \udce9'


@pytest.fixture
def repo(tmp_path: Path, home: Path) -> Path:
    """`before` is checked out; `after` changes a file of every kind. Line ends are the platform's others."""
    repo = make_repo(tmp_path / "repo")
    git(repo, "config", "core.autocrlf", "true")
    git(repo, "config", "core.safecrlf", "false")
    write_files(repo, {"text": "old\n" * 200, "gone/deep/file": "x\n", "file": "a file\n", "dir/file": "d\n"})
    write_files(repo, {"tool": "#!/bin/sh\n", "same": "same\n", "link": "was a file\n", ODD: "odd\n"})
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "before")
    git(repo, "checkout", "-q", "HEAD", ".")
    git(repo, "branch", "before")
    git(repo, "switch", "-q", "-c", "after")
    git(repo, "rm", "-q", "-r", "gone", "file", "dir")
    (repo / "link").unlink()
    (repo / "link").symlink_to("text")
    write_files(repo, {"text": "new\n" * 300, "file/now a directory": "f\n", "dir": "now a file\n"})
    write_files(repo, {"new/deep/file": "n\n" * 1000, "empty": "", ODD: "changed\n"})
    (repo / "tool").chmod(0o755)
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "after")
    git(repo, "switch", "-q", "main")
    git(repo, "reset", "-q", "--hard", "before")
    return repo


def begun(repo: Path, *, branch_moved: bool = False) -> Checkout:
    """As a kill leaves it: all files written, and the lock of the index held."""
    checkout = main_checkout(find_repository(repo))
    before, after = git(repo, "rev-parse", "before"), git(repo, "rev-parse", "after")
    move = Move("task-1", "main", before, after)
    write_move(checkout, move)
    next_index(checkout).write_bytes(checkout.index.read_bytes())
    env = {"GIT_INDEX_FILE": str(next_index(checkout))}
    checkout.run("read-tree", "-m", "-u", before, after, env=env)
    if branch_moved:
        git(repo, "update-ref", "refs/heads/main", after, before)
    index_lock(checkout).write_text(move.mark)
    return checkout


def everything(repo: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in repo.rglob("*"):
        if ".git" in path.relative_to(repo).parts[:1]:
            continue
        name = os.fspath(path.relative_to(repo))
        if path.is_symlink():
            found[name] = os.readlink(path)
        else:
            found[name] = (path.is_dir(), path.is_file() and path.read_bytes(), path.stat().st_mode & 0o111)
    return found | {
        "status": git(repo, "status", "--porcelain", "-uall"),
        "head": git(repo, "rev-parse", "HEAD"),
    }


def test_every_kind_of_change_is_taken_back(repo: Path) -> None:
    before = everything(repo)
    checkout = begun(repo)
    assert everything(repo) != before
    settled = settle_interrupted_move(checkout)
    assert settled is not None
    assert (settled.landed, settled.left) == (False, ())
    assert everything(repo) == before
    assert not index_lock(checkout).exists()
    assert read_move(checkout) is None
    assert settle_interrupted_move(checkout) is None


@pytest.mark.parametrize("size", [0, 512, 1024])
def test_what_was_written_in_part_is_taken_back(repo: Path, size: int) -> None:
    before = everything(repo)
    checkout = begun(repo)
    for name in ("text", "new/deep/file"):
        os.truncate(repo / name, size)
    settle_interrupted_move(checkout)
    assert everything(repo) == before


def test_what_was_only_removed_yet_comes_back(repo: Path) -> None:
    before = everything(repo)
    checkout = begun(repo)
    for name in ("text", "link", "file/now a directory", "dir"):
        (repo / name).unlink()
    settle_interrupted_move(checkout)
    assert everything(repo) == before


@pytest.mark.parametrize("lock_is_kept", [True, False])
def test_where_the_branch_has_moved_the_index_follows(repo: Path, lock_is_kept: bool) -> None:
    checkout = begun(repo, branch_moved=True)
    write_files(repo, {"same": "a person's\n"})
    if not lock_is_kept:  # somebody removed it, as git advises, and staged something
        index_lock(checkout).unlink()
        git(repo, "add", "same")
    settled = settle_interrupted_move(checkout)
    assert settled is not None
    assert settled.landed
    assert git(repo, "status", "--porcelain", "-uall") == ("M same" if lock_is_kept else "M  same")
    assert git(repo, "diff", "after", "--name-only") == "same"


@pytest.mark.parametrize("since", ["switch", "commit"])
def test_what_somebody_does_after_it_has_landed_does_not_take_it_back(repo: Path, since: str) -> None:
    """As after a kill between the last step and forgetting the note of it."""
    move = Move("task-1", "main", git(repo, "rev-parse", "before"), git(repo, "rev-parse", "after"))
    git(repo, "merge", "-q", "--ff-only", "after")
    git(repo, "branch", "other", "before")
    if since == "switch":
        git(repo, "switch", "-q", "other")
    else:
        commit_files(repo, {"own": "1\n"})
    before = everything(repo)
    checkout = main_checkout(find_repository(repo))
    write_move(checkout, move)
    settled = settle_interrupted_move(checkout)
    assert settled is not None
    assert settled.landed
    assert everything(repo) == before


@pytest.mark.parametrize("branch_moved", [True, False])
def test_what_a_person_wrote_stays_and_is_named(repo: Path, branch_moved: bool) -> None:
    checkout = begun(repo, branch_moved=branch_moved)
    own = {"text": "a person's\n", "new/deep/file": "n\n" * 3, "file/beside": "own\n", "new/beside": "own\n"}
    write_files(repo, own)
    settled = settle_interrupted_move(checkout)
    assert settled is not None
    assert {"text", "new/deep/file"} <= set(settled.left)
    assert {name: (repo / name).read_text() for name in own} == own
    if not branch_moved:
        assert "file" in settled.left  # a directory with something of theirs stands where the file was
        assert (repo / "tool").stat().st_mode & 0o111 == 0
        assert (repo / "dir/file").exists()


def test_a_parent_that_became_a_link_leads_nowhere(repo: Path, tmp_path: Path) -> None:
    """What git added below it is not looked for elsewhere."""
    outside = tmp_path / "outside"
    write_files(outside, {"deep/file": "n\n" * 1000})
    checkout = begun(repo)
    git(repo, "-c", "core.excludesFile=", "clean", "-q", "-f", "-x", "new")
    (repo / "new/deep").rmdir() if (repo / "new/deep").exists() else None
    (repo / "new").rmdir() if (repo / "new").exists() else None
    (repo / "new").symlink_to(outside)
    settle_interrupted_move(checkout)
    assert (outside / "deep/file").exists()
    assert (repo / "new").is_symlink()


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"version": 2}', "\0"])
def test_a_damaged_note_is_refused_by_name(repo: Path, content: str) -> None:
    checkout = begun(repo)
    file = checkout.git_dir / "agent-farm-merge.json"
    file.write_text(content)
    with pytest.raises(DamagedFile, match=r"agent-farm-merge\.json"):
        settle_interrupted_move(checkout)
