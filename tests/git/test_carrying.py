"""What is carried to another worktree arrives byte for byte, and taking it changes nothing."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_farm.errors import AgentFarmError
from agent_farm.git.carrying import carry_changes
from agent_farm.git.checkout import linked_tree, main_checkout
from agent_farm.git.ignoring import exclude
from agent_farm.git.repository import find_repository
from tests.gitrepo import commit_files, git, write_files

FILES = {
    "a.txt": "one\ntwo\nthree\n",
    "b.txt": "b\n",
    "dir/c.txt": "c\n",
    "dir/d.txt": "d\n",
    "run.sh": "#!/bin/sh\n",
}


def carried(repo: Path, source: Path) -> Path:
    """A fresh worktree at the same commit, with what is uncommitted at `source`."""
    git(repo, "worktree", "add", "-q", "-b", "builder/y", ".builders/y", git(source, "rev-parse", "HEAD"))
    repository = find_repository(repo)
    here = main_checkout(repository) if source == repo else linked_tree(repository, source)
    carry_changes(here, linked_tree(repository, repo / ".builders/y"))
    return repo / ".builders/y"


@pytest.fixture
def tree(repo: Path) -> Path:
    """A builder's worktree on its own branch."""
    commit_files(repo, FILES, "files")
    git(repo, "worktree", "add", "-q", "-b", "builder/x", ".builders/x")
    return repo / ".builders/x"


def everything(tree: Path) -> dict[str, tuple[int, bytes]]:
    """Each path below `tree` with its mode and bytes, git's own excepted."""
    found: dict[str, tuple[int, bytes]] = {}
    for current, folders, files in os.walk(tree):
        for name in [*folders, *files]:
            path = Path(current, name)
            if path.name == ".git":
                continue
            content = os.fsencode(os.readlink(path)) if path.is_symlink() else b""
            if path.is_file() and not path.is_symlink():
                content = path.read_bytes()
            mode = path.lstat().st_mode if not path.is_dir() or path.is_symlink() else 0
            found[str(path.relative_to(tree))] = (mode, content)
    return found


def index_of(tree: Path) -> str:
    return git(tree, "ls-files", "--stage", "-v", "-z")


def fingerprint(tree: Path) -> tuple[object, ...]:
    git_dir = Path(git(tree, "rev-parse", "--absolute-git-dir"))
    index = hashlib.sha256((git_dir / "index").read_bytes()).hexdigest()
    times = sorted((name, (tree / name).lstat().st_mtime_ns) for name in everything(tree))
    return index, times, sorted(os.listdir(git_dir))


def dirty(tree: Path) -> None:
    (tree / "a.txt").write_text("changed\n")


def untracked(tree: Path) -> None:
    write_files(tree, {"new.txt": "n\n", "deep/er/new.txt": "n\n"})


def staged_and_then_changed(tree: Path) -> None:
    (tree / "a.txt").write_text("staged\n")
    git(tree, "add", "a.txt")
    (tree / "a.txt").write_text("worktree\n")


def staged_only(tree: Path) -> None:
    (tree / "a.txt").write_text("staged\n")
    (tree / "new").write_text("staged as well\n")
    git(tree, "add", "a.txt", "new")


def staged_then_put_back(tree: Path) -> None:
    (tree / "a.txt").write_text("staged\n")
    git(tree, "add", "a.txt")
    (tree / "a.txt").write_text(FILES["a.txt"])


def deleted(tree: Path) -> None:
    (tree / "a.txt").unlink()
    git(tree, "rm", "-q", "dir/c.txt", "dir/d.txt")
    git(tree, "rm", "-q", "--cached", "b.txt")


def renamed(tree: Path) -> None:
    git(tree, "mv", "a.txt", "z.txt")
    (tree / "b.txt").rename(tree / "y.txt")


def modes(tree: Path) -> None:
    (tree / "run.sh").chmod(0o755)
    (tree / "tool").write_text("x")
    (tree / "tool").chmod(0o700)


def links(tree: Path) -> None:
    (tree / "link").symlink_to("/nowhere/at\nall")
    (tree / "b.txt").unlink()
    (tree / "b.txt").symlink_to("a.txt")
    shutil.rmtree(tree / "dir")
    (tree / "dir").symlink_to("/tmp")


def bytes_as_they_are(tree: Path) -> None:
    (tree / "binary").write_bytes(bytes(range(256)) * 50)
    (tree / "a.txt").write_bytes(b"one\r\ntwo\nthree\r\n")
    (tree / ".gitattributes").write_text("* text=auto eol=lf\n*.txt ident\n")
    (tree / "b.txt").write_bytes(b"$Id$ \r\n")
    (tree / "empty").touch()


def hostile_names(tree: Path) -> None:
    for name in ["-rf", "two\nlines", ' "quoted" ', "$(touch x)", "ö", "\udcff", "back\\slash", "cr\r", "*"]:
        (tree / name).write_text("x")


def directories_for_files(tree: Path) -> None:
    (tree / "a.txt").unlink()
    write_files(tree, {"a.txt/inside": "x\n"})
    shutil.rmtree(tree / "dir")
    (tree / "dir").write_text("a file now\n")


def conflict(tree: Path) -> None:
    git(tree, "checkout", "-q", "-b", "other")
    commit_files(tree, {"a.txt": "theirs\n"}, "theirs")
    git(tree, "checkout", "-q", "builder/x")
    commit_files(tree, {"a.txt": "ours\n"}, "ours")
    git(tree, "merge", "-q", "other", check=False)


def intent_to_add(tree: Path) -> None:
    (tree / "later").write_text("x\n")
    git(tree, "add", "--intent-to-add", "later")


def split_index(tree: Path) -> None:
    git(tree, "update-index", "--split-index")
    staged_and_then_changed(tree)


CHANGES = [
    dirty,
    untracked,
    staged_and_then_changed,
    staged_only,
    staged_then_put_back,
    deleted,
    renamed,
    modes,
    links,
    bytes_as_they_are,
    hostile_names,
    directories_for_files,
    conflict,
    intent_to_add,
    split_index,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_changes_arrive_byte_for_byte(tree: Path, repo: Path, change: Callable[[Path], None]) -> None:
    change(tree)
    before, index, untouched = everything(tree), index_of(tree), fingerprint(tree)
    other = carried(repo, tree)
    assert fingerprint(tree) == untouched
    assert everything(other) == before
    assert index_of(other) == index
    assert git(other, "status", "--porcelain") == git(tree, "status", "--porcelain")


def test_filters_do_not_change_what_is_carried(tree: Path, repo: Path) -> None:
    commit_files(tree, {"crlf.txt": "a\n"}, "crlf")
    git(tree, "config", "core.autocrlf", "true")
    git(tree, "config", "core.safecrlf", "true")
    (tree / "mixed.txt").write_bytes(b"a\r\nb\n")
    (tree / "crlf.txt").write_bytes(b"a\nb\r\n")
    other = carried(repo, tree)
    assert git(other, "status", "--porcelain") == "M crlf.txt\n?? mixed.txt"
    for name in ("mixed.txt", "crlf.txt"):
        assert everything(other)[name] == everything(tree)[name]


def test_a_change_too_fast_for_the_clock_is_carried(tree: Path, repo: Path) -> None:
    index = Path(git(tree, "rev-parse", "--absolute-git-dir")) / "index"
    git(tree, "config", "core.trustctime", "false")
    os.utime(tree / "b.txt", (1000, 1000))
    git(tree, "update-index", "--refresh")
    (tree / "b.txt").write_text("B\n")
    for file in (tree / "b.txt", index):
        os.utime(file, (1000, 1000))
    assert (carried(repo, tree) / "b.txt").read_text() == "B\n"


def test_a_nested_repository_and_ignored_files_stay_behind(tree: Path, repo: Path) -> None:
    git(tree, "init", "-q", "nested")
    commit_files(tree / "nested", {"x": "x\n"})
    write_files(tree, {".gitignore": "*.log\n", "x.log": "x\n"})
    other = carried(repo, tree)
    assert git(other, "status", "--porcelain") == "?? .gitignore"
    assert not (other / "x.log").exists()


def test_what_a_link_leads_to_stays_behind(tree: Path, repo: Path) -> None:
    outside = repo.parent / "outside"
    shutil.copytree(tree / "dir", outside)
    shutil.rmtree(tree / "dir")
    (tree / "dir").symlink_to(outside)
    other = carried(repo, tree)
    assert os.readlink(other / "dir") == os.fspath(outside)
    assert sorted(os.listdir(outside)) == ["c.txt", "d.txt"]


def test_from_the_main_checkout(repo: Path) -> None:
    commit_files(repo, FILES, "files")
    staged_and_then_changed(repo)
    untracked(repo)
    exclude(find_repository(repo), ["/.builders/"])
    other = carried(repo, repo)
    assert git(other, "status", "--porcelain") == git(repo, "status", "--porcelain") != ""


def test_another_commit_is_not_written_over(tree: Path, repo: Path) -> None:
    dirty(tree)
    git(repo, "worktree", "add", "-q", "--detach", ".builders/z")
    commit_files(repo / ".builders/z", {"a.txt": "on\n"}, "on")
    repository = find_repository(repo)
    with pytest.raises(AgentFarmError, match="got a new commit"):
        carry_changes(linked_tree(repository, tree), linked_tree(repository, repo / ".builders/z"))
