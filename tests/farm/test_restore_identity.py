"""What a removal takes away comes back as it was: git's part, the files, and what is neither."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.conftest import Spawned
from tests.gitrepo import commit_files, git, write_files

pytestmark = pytest.mark.slow

Spawn = Callable[..., Spawned]
DISCARD = ("--discard-changes", "--discard-commits")


def everything(root: Path) -> dict[str, tuple[object, ...]]:
    """Each path below with type, mode, time and content; `.git` itself left out."""
    found: dict[str, tuple[object, ...]] = {}
    for directory, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        for path in (Path(directory) / name for name in [*folders, *files] if name != ".git"):
            facts = path.lstat()
            content = os.readlink(path) if path.is_symlink() else None
            if stat.S_ISREG(facts.st_mode):
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(root))] = (facts.st_mode, facts.st_mtime_ns, content)
    return found


def state(builder: Spawned) -> dict[str, object]:
    return {
        "files": everything(builder.worktree),
        "index": builder.git("ls-files", "--stage", "-v", "-z"),
        "head": builder.git("symbolic-ref", "HEAD"),
        "commit": builder.git("rev-parse", "HEAD"),
        "reflog": builder.git("reflog", "show", "HEAD"),
        "branch reflog": builder.git("reflog", "show", builder.branch),
        "settings": git(builder.repo, "config", "--local", "--get-regexp", r"^branch\."),
        "own settings": builder.git("config", "--worktree", "--list"),
        "sparse": git(builder.worktree, "sparse-checkout", "list", check=False),
        "status": builder.git("status", "--porcelain=v2", "--branch", "--ignored"),
    }


def prune(builder: Spawned, *flags: str) -> None:
    done = builder.af("prune", builder.id, *flags)
    assert done.returncode == 0, done.stderr


def collect(repo: Path) -> None:
    """As harsh as git can be, and what a person may type."""
    git(repo, "worktree", "prune", "--expire=now")
    git(repo, "reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
    git(repo, "gc", "-q", "--prune=now")


def restore(builder: Spawned) -> None:
    done = builder.af("restore", builder.id)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def rich(spawn: Spawn, repo: Path) -> Spawned:
    """An index with three sides, every kind of file, sparse patterns, settings, an upstream."""
    commit_files(
        repo,
        {".gitignore": "*.local\ntmp/\n", "src/a.txt": "a\n", "docs/b.txt": "b\n", "both.txt": "0\n"},
    )
    git(repo, "config", "extensions.worktreeConfig", "true")
    builder = spawn("--shell").stop()
    tree = builder.worktree
    git(repo, "config", f"branch.{builder.branch}.remote", ".")
    git(repo, "config", f"branch.{builder.branch}.merge", "refs/heads/main")
    builder.git("config", "--worktree", "user.name", "BUILDERONLY")
    commit_files(tree, {"away.txt": "amended away\n"})
    builder.git("commit", "-q", "--amend", "-m", "the commit that stays")
    commit_files(tree, {"reset.txt": "only the reflog knows\n"})
    builder.git("reset", "-q", "--hard", "HEAD~1")
    blobs = [git(tree, "hash-object", "-w", "--stdin", input=f"{side}\n") for side in "123"]
    sides = "".join(f"100644 {blob} {n}\tboth.txt\n" for n, blob in enumerate(blobs, 1))
    builder.git("update-index", "--force-remove", "both.txt")
    git(tree, "update-index", "--index-info", input=sides)
    write_files(tree, {"staged.txt": "staged\n"})
    builder.git("add", "staged.txt")
    write_files(tree, {"staged.txt": "and then changed\r\n", "new/deep.txt": "x", "secret.local": "KEY"})
    (tree / "src/a.txt").chmod(0o600)
    (tree / "empty").mkdir(mode=0o750)
    (tree / "new").chmod(0o700)
    (tree / "tmp").mkdir()
    os.mkfifo(tree / "tmp/ctl")
    os.symlink("nowhere", tree / "link")
    return builder


def test_all_of_it_comes_back_identical_after_gc(rich: Spawned, repo: Path) -> None:
    before = state(rich)
    prune(rich, *DISCARD)
    assert not rich.worktree.exists()
    git(repo, "worktree", "prune", "--expire=now")
    git(repo, "gc", "-q", "--prune=now")
    restore(rich)
    assert state(rich) == before


def test_commits_that_only_the_reflog_knows_outlive_an_expired_reflog(rich: Spawned, repo: Path) -> None:
    lonely = [line.split()[0] for line in rich.git("reflog", "show", "HEAD").splitlines()]
    full = {rich.git("rev-parse", name) for name in lonely}
    before = everything(rich.worktree)
    prune(rich, *DISCARD)
    collect(repo)
    assert all(git(repo, "cat-file", "-t", commit) == "commit" for commit in full)
    restore(rich)
    assert everything(rich.worktree) == before
    assert git(repo, "fsck", "--no-dangling") == ""


def test_a_builder_without_such_commits_leaves_no_ref(spawn: Spawn, repo: Path) -> None:
    """`git log --all` shows commits of the builder, and none of ours."""
    builder = spawn().stop()
    prune(builder, *DISCARD)
    assert git(repo, "for-each-ref", "refs/agent-farm") == ""
    assert "Salvage" not in git(repo, "log", "--all", "--format=%s")


@pytest.mark.parametrize(
    "set_up",
    [
        ("sparse-checkout", "set", "src"),
        ("sparse-checkout", "set", "--no-cone", "*.txt"),
    ],
)
def test_a_sparse_checkout_comes_back(spawn: Spawn, repo: Path, set_up: tuple[str, ...]) -> None:
    commit_files(repo, {"src/a.txt": "a\n", "docs/b.txt": "b\n"})
    builder = spawn("--shell").stop()
    builder.git(*set_up)
    before, rules = everything(builder.worktree), builder.git("sparse-checkout", "list")
    prune(builder)
    git(repo, "sparse-checkout", "set", "docs")  # the main checkout's changes meanwhile
    restore(builder)
    assert everything(builder.worktree) == before
    assert builder.git("sparse-checkout", "list") == rules
    assert builder.git("status", "--porcelain") == ""


def test_a_worktree_inside_the_worktree_comes_back(spawn: Spawn, repo: Path) -> None:
    builder = spawn("--shell").stop()
    builder.git("worktree", "add", "-q", "--detach", "wt2")
    inner = builder.worktree / "wt2"
    commit = commit_files(inner, {"inner.txt": "1\n"})
    prune(builder, *DISCARD)
    collect(repo)
    restore(builder)
    assert git(inner, "rev-parse", "HEAD") == commit
    assert git(inner, "status", "--porcelain") == ""
    assert "locked" not in git(repo, "worktree", "list", "--porcelain")


def test_a_builder_whose_branch_was_deleted_can_be_removed(spawn: Spawn, repo: Path) -> None:
    builder = spawn("--shell").stop()
    git(repo, "update-ref", "-d", f"refs/heads/{builder.branch}")
    before = everything(builder.worktree)
    prune(builder, *DISCARD)
    restore(builder)
    assert everything(builder.worktree) == before


def test_it_is_moved_and_not_read(spawn: Spawn, repo: Path) -> None:
    """A gigabyte that is not there on disk, and a pipe that never ends: the same files afterwards."""
    commit_files(repo, {".gitignore": "tmp/\n"})
    builder = spawn("--shell").stop()
    (builder.worktree / "tmp").mkdir()
    (repo / "tmp").mkdir()
    for place in (repo, builder.worktree):
        os.mkfifo(place / "tmp/ctl")
        with open(place / "tmp/huge", "wb") as file:
            file.truncate(64 << 30)
    before = (builder.worktree / "tmp/huge").stat().st_ino
    prune(builder)
    restore(builder)
    assert (builder.worktree / "tmp/huge").stat().st_ino == before


def test_a_removed_builder_moves_with_its_repository(spawn: Spawn, repo: Path, af: Af) -> None:
    builder = spawn("--shell").stop()
    write_files(builder.worktree, {"work.txt": "mine\n"})
    prune(builder, *DISCARD)
    moved = repo.with_name("moved")
    repo.rename(moved)
    done = af("restore", builder.id, cwd=moved)
    assert done.returncode == 0, done.stderr
    tree = moved / ".builders" / builder.id
    assert (tree / "work.txt").read_text() == "mine\n"
    assert git(tree, "branch", "--show-current") == builder.branch
    assert git(moved, "worktree", "list").count(builder.id) == 2  # its path and its branch


def test_a_copy_restores_its_own(spawn: Spawn, repo: Path, af: Af) -> None:
    builder = spawn("--shell").stop()
    write_files(builder.worktree, {"work.txt": "mine\n"})
    prune(builder, *DISCARD)
    copy = repo.with_name("copy")
    assert os.spawnlp(os.P_WAIT, "cp", "cp", "-a", str(repo), str(copy)) == 0
    done = af("restore", builder.id, cwd=copy)
    assert done.returncode == 0, done.stderr
    assert (copy / ".builders" / builder.id / "work.txt").exists()
    assert not builder.worktree.exists()
    restore(builder)
    assert git(builder.worktree, "rev-parse", "--absolute-git-dir").startswith(str(repo))
