"""What is carried to another worktree arrives byte for byte, and taking it changes nothing."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_farm.errors import AgentFarmError, DamagedFile
from agent_farm.git.ignoring import exclude
from agent_farm.git.repository import find_repository
from agent_farm.git.restoring import restore_state
from agent_farm.git.salvage import load_manifest, snapshot_commit
from agent_farm.git.snapshot import Manifest
from tests.gitrepo import commit_files, git, write_files

REF = "refs/test/state"
FILES = {
    "a.txt": "one\ntwo\nthree\n",
    "b.txt": "b\n",
    "dir/c.txt": "c\n",
    "dir/d.txt": "d\n",
    "run.sh": "#!/bin/sh\n",
}


def salvage(tree: Path, ref: str) -> Manifest:
    """The state under a ref, so that it outlives what `rebuilt` does."""
    commit = snapshot_commit(tree)
    git(tree, "update-ref", ref, commit)
    return load_manifest(tree, commit)


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


def rebuilt(tree: Path, head: str | None = None) -> Path:
    """The same worktree again, as it was right after a spawn."""
    main = Path(git(tree, "rev-parse", "--path-format=absolute", "--git-common-dir")).parent
    at = head or git(tree, "rev-parse", "HEAD")
    git(main, "worktree", "unlock", str(tree), check=False)
    git(main, "worktree", "remove", "--force", str(tree))
    git(main, "branch", "-D", "builder/x", check=False)
    git(main, "reflog", "expire", "--expire=now", "--all")
    git(main, "gc", "-q", "--prune=now")
    git(main, "worktree", "add", "-q", "-b", "builder/x", str(tree), at)
    return tree


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
    (tree / "b.txt").chmod(0o600)
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


def empty_directories(tree: Path) -> None:
    (tree / "hollow/inner").mkdir(parents=True)
    (tree / "dir/hollow").mkdir()
    write_files(tree, {"half/file": "x\n"})
    (tree / "half/hollow").mkdir()


def conflict(tree: Path) -> None:
    git(tree, "checkout", "-q", "-b", "other")
    commit_files(tree, {"a.txt": "theirs\n"}, "theirs")
    git(tree, "checkout", "-q", "builder/x")
    commit_files(tree, {"a.txt": "ours\n"}, "ours")
    git(tree, "merge", "-q", "other", check=False)


def flags(tree: Path) -> None:
    git(tree, "update-index", "--assume-unchanged", "a.txt")
    git(tree, "update-index", "--skip-worktree", "b.txt")
    (tree / "a.txt").write_text("unseen\n")
    (tree / "b.txt").write_text("unseen as well\n")


def flags_behind_a_link(tree: Path) -> None:
    git(tree, "update-index", "--skip-worktree", "dir/c.txt")
    outside = tree.parent / "outside"
    shutil.copytree(tree / "dir", outside)
    shutil.rmtree(tree / "dir")
    (tree / "dir").symlink_to(outside)


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
    empty_directories,
    conflict,
    flags,
    flags_behind_a_link,
    intent_to_add,
    split_index,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_state_comes_back_byte_for_byte(tree: Path, change: Callable[[Path], None]) -> None:
    change(tree)
    before, index, untouched = everything(tree), index_of(tree), fingerprint(tree)
    kept = salvage(tree, REF)
    assert fingerprint(tree) == untouched
    rebuilt(tree, kept.head)
    restore_state(REF, tree)
    assert everything(tree) == before
    assert index_of(tree) == index


def test_filters_do_not_change_what_is_kept(tree: Path) -> None:
    commit_files(tree, {"crlf.txt": "a\n"}, "crlf")
    git(tree, "config", "core.autocrlf", "true")
    git(tree, "config", "core.safecrlf", "true")
    (tree / "mixed.txt").write_bytes(b"a\r\nb\n")
    (tree / "crlf.txt").write_bytes(b"a\nb\r\n")
    before = everything(tree)
    kept = salvage(tree, REF)
    rebuilt(tree, kept.head)
    restore_state(REF, tree)
    assert git(tree, "status", "--porcelain") == "M crlf.txt\n?? mixed.txt"
    assert everything(tree)["mixed.txt"] == before["mixed.txt"]
    assert everything(tree)["crlf.txt"] == before["crlf.txt"]


def test_a_change_too_fast_for_the_clock_is_kept(tree: Path) -> None:
    index = Path(git(tree, "rev-parse", "--absolute-git-dir")) / "index"
    git(tree, "config", "core.trustctime", "false")
    os.utime(tree / "b.txt", (1000, 1000))
    git(tree, "update-index", "--refresh")
    (tree / "b.txt").write_text("B\n")
    for file in (tree / "b.txt", index):
        os.utime(file, (1000, 1000))
    salvage(tree, REF)
    assert git(tree, "show", f"{REF}:worktree/b.txt") == "B"


def test_a_nested_repository_is_reported_and_its_files_are_not_in_there(tree: Path) -> None:
    git(tree, "init", "-q", "nested")
    commit_files(tree / "nested", {"x": "x\n"})
    kept = salvage(tree, REF)
    assert kept.nested == ["nested/"]
    assert kept.untracked == []


def test_ignored_files_are_not_kept(tree: Path) -> None:
    write_files(tree, {".gitignore": "*.log\n", "x.log": "x\n"})
    assert salvage(tree, REF).untracked == [".gitignore"]


def test_a_state_travels_to_another_checkout(tree: Path, repo: Path) -> None:
    staged_and_then_changed(repo)
    untracked(repo)
    exclude(find_repository(repo), ["/.builders/"])
    restore_state(snapshot_commit(repo), tree)
    assert git(tree, "status", "--porcelain") == git(repo, "status", "--porcelain") != ""


def test_a_changed_worktree_and_another_commit_are_not_written_over(tree: Path) -> None:
    dirty(tree)
    salvage(tree, REF)
    with pytest.raises(AgentFarmError, match="changes of its own"):
        restore_state(REF, tree)
    git(tree, "commit", "-q", "-a", "-m", "on")
    with pytest.raises(AgentFarmError, match="the salvage at"):
        restore_state(REF, tree)


def test_a_manifest_of_a_newer_version_is_refused(tree: Path) -> None:
    with pytest.raises(DamagedFile, match="newer"):
        Manifest.from_json(b'{"version": 2}', "x")
