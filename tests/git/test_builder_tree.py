"""git in a worktree that somebody else writes to: what is in there decides neither where nor what it runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from agent_farm.errors import AgentFarmError
from agent_farm.git.changes import tree_state
from agent_farm.git.checkout import BuilderTree, CheckedOut, WorktreeMismatch, builder_tree
from agent_farm.git.repository import Repository, find_repository
from tests.gitrepo import commit_files, git, make_repo, write_files


@pytest.fixture
def repository(repo: Path) -> Repository:
    """With two worktrees where a farm has them."""
    for id in ("one", "two"):
        git(repo, "worktree", "add", "-q", "-b", f"builder/{id}", str(repo / ".builders" / id))
    return find_repository(repo)


@pytest.fixture
def tree(repository: Repository) -> BuilderTree:
    return opened(repository)


def opened(repository: Repository, id: str = "one") -> BuilderTree:
    return builder_tree(repository, id, repository.root / ".builders" / id)


@pytest.fixture
def bait(tmp_path: Path) -> Bait:
    return Bait(tmp_path / "ran")


CHANGED = "# scribble"  # as long as what is committed, so that git has to read it


class Bait:
    """A command that leaves a trace when somebody runs it."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    @property
    def command(self) -> str:
        return f"env > {self.trace}; cat; true"

    @property
    def was_taken(self) -> bool:
        return self.trace.exists()

    def git_directory(self, at: Path, worktree: Path) -> Path:
        """One whose configuration runs the command on every occasion."""
        git(worktree.parent, "init", "-q", "--bare", str(at))
        self.configure(at / "config")
        git(at, "config", "core.bare", "false")
        git(at, "config", "core.worktree", str(worktree))
        return at

    def configure(self, config: Path) -> None:
        names = (
            "core.fsmonitor",
            "diff.external",
            "filter.bait.clean",
            "diff.bait.textconv",
            "diff.bait.command",
        )
        for name in names:
            git(config.parent, "config", "--file", str(config), name, self.command)
        hooks = config.parent / "hooks"
        hooks.mkdir(exist_ok=True)
        for name in ("post-checkout", "post-index-change", "reference-transaction"):
            (hooks / name).write_text(f"#!/bin/sh\n{self.command}\n")
            (hooks / name).chmod(0o755)


def look_around(tree: BuilderTree) -> None:
    """What status, diff and prune ask."""
    tree_state(tree)
    untracked = tree.run("-c", "core.quotePath=false", "ls-files", "--others", "--directory").splitlines()
    tree.run("add", "--intent-to-add", "--force", "--", *untracked, ok=(0, 1, 128))
    for command in (
        ("diff", "HEAD"),
        ("diff-index", "-p", "HEAD"),
        ("diff-files", "-p"),
        ("log", "-p", "-1"),
    ):
        tree.run(*command, "--")
    tree.run("update-index", "-q", "--refresh", ok=(0, 1))
    tree.run("switch", "-q", "--detach", ok=(0, 1))


def test_it_answers_for_the_worktree(repository: Repository, tree: BuilderTree) -> None:
    head = commit_files(tree.path, {"new.txt": "new\n"})
    write_files(tree.path, {"more.txt": ""})
    assert tree.head().commit == head
    assert (tree.head().branch, tree.checked_out()) == ("builder/one", CheckedOut("builder/one", None))
    assert tree_state(tree).untracked == ("more.txt",)
    git(tree.path, "checkout", "-q", "--detach")
    assert (tree.head().branch, tree.checked_out()) == (None, CheckedOut(None, head))
    assert (tree.checked_out().name, opened(repository, "two").checked_out().name) == (
        head,
        "refs/heads/builder/two",
    )


def test_it_is_found_from_itself_and_through_links_above_the_repository(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", "-b", "b", str(repo / ".builders/one"))
    (tmp_path / "link").symlink_to(repo)
    for cwd in (repo / ".builders/one", tmp_path / "link"):
        opened(find_repository(cwd)).head()


def planted_directory(tree: Path, evil: Path) -> None:
    (tree / ".git").unlink()
    evil.rename(tree / ".git")


def planted_link(tree: Path, evil: Path) -> None:
    (tree / ".git").unlink()
    (tree / ".git").symlink_to(evil)


def planted_file(tree: Path, evil: Path) -> None:
    (tree / ".git").write_text(f"gitdir: {evil}\n")


def planted_main(tree: Path, evil: Path) -> None:
    (tree / ".git").write_text("gitdir: ../../.git\n")


def planted_other(tree: Path, evil: Path) -> None:
    shutil.copy(tree.parent / "two/.git", tree / ".git")


def planted_fifo(tree: Path, evil: Path) -> None:
    (tree / ".git").unlink()
    os.mkfifo(tree / ".git")


def planted_gigabyte(tree: Path, evil: Path) -> None:
    with (tree / ".git").open("ab") as file:
        file.truncate(1 << 30)


def planted_words(tree: Path, evil: Path) -> None:
    (tree / ".git").write_text("../evil\n")


def nothing_there(tree: Path, evil: Path) -> None:
    (tree / ".git").unlink()


def another_repository(tree: Path, evil: Path) -> None:
    shutil.rmtree(tree)
    make_repo(tree)


def registered_elsewhere(tree: Path, evil: Path) -> None:
    admin = tree.parent.parent / ".git/worktrees/one"
    (admin / "gitdir").write_text(f"{tree.parent}/two/.git\n")


def shared_with_another(tree: Path, evil: Path) -> None:
    (tree.parent.parent / ".git/worktrees/one/commondir").write_text(f"{evil}\n")


@pytest.mark.parametrize(
    "plant",
    [
        planted_directory, planted_link, planted_file, planted_main, planted_other, planted_fifo,
        planted_gigabyte, planted_words, nothing_there, another_repository, registered_elsewhere,
        shared_with_another,
    ],
)  # fmt: skip
def test_a_worktree_that_is_not_what_git_says_is_refused(
    repository: Repository, bait: Bait, plant: Callable[[Path, Path], None]
) -> None:
    path = repository.root / ".builders/one"
    plant(path, bait.git_directory(path / "evil", path))
    with pytest.raises(WorktreeMismatch) as caught:
        opened(repository)
    assert (caught.value.word, caught.value.why is not None) == ("not ours", True)
    assert not bait.was_taken


def test_a_directory_that_leads_elsewhere_or_is_gone_is_refused(
    repository: Repository, tmp_path: Path
) -> None:
    builders = repository.root / ".builders"
    with pytest.raises(WorktreeMismatch, match="is not the worktree of two"):
        builder_tree(repository, "two", builders / "one")
    (builders / "one").rename(tmp_path / "one")
    with pytest.raises(WorktreeMismatch) as caught:
        opened(repository)
    assert caught.value.word == "no tree"
    (builders / "one").symlink_to(tmp_path / "one")
    with pytest.raises(WorktreeMismatch, match="is not the worktree of one"):
        opened(repository)
    (builders / "one").unlink()
    builders.rename(tmp_path / "builders")
    builders.symlink_to(tmp_path / "builders")
    with pytest.raises(WorktreeMismatch, match="is not the worktree of two"):
        opened(repository, "two")


def test_a_git_directory_that_changes_after_the_check_is_not_looked_for_again(
    tree: BuilderTree, bait: Bait
) -> None:
    evil = bait.git_directory(tree.path / "evil", tree.path)
    planted_file(tree.path, evil)
    look_around(tree)
    (tree.git_dir / "commondir").write_text(f"{evil}\n")
    write_files(tree.path, {".gitattributes": "* filter=bait\n", "README.md": CHANGED})
    with suppress(AgentFarmError):
        look_around(tree)
    assert not bait.was_taken


def test_what_is_configured_in_the_repository_runs_nothing_of_its_own(tree: BuilderTree, bait: Bait) -> None:
    """A builder that may run commands can write there; a filter is what is left to it."""
    bait.configure(tree.common_dir / "config")
    git(tree.path, "config", "--unset", "filter.bait.clean")
    write_files(tree.path, {".gitattributes": "* diff=bait filter=bait\n", "README.md": CHANGED})
    look_around(tree)
    assert not bait.was_taken


@pytest.mark.parametrize("planted", ["directory", "file"])
def test_a_repository_inside_runs_nothing(
    tree: BuilderTree, bait: Bait, planted: str, tmp_path: Path
) -> None:
    """As a submodule that nobody checked out, and as a directory of its own."""
    git(tree.path, "config", "diff.submodule", "diff")
    make_repo(tmp_path / "library")
    for name in ("sub", "nested"):
        git(tree.path, "-c", "protocol.file.allow=always", "clone", "-q", str(tmp_path / "library"), name)
    git(tree.path, "-c", "advice.addEmbeddedRepo=false", "add", "sub")
    git(tree.path, "commit", "-q", "-m", "a submodule")
    for name in ("sub", "nested"):
        inner = tree.path / name
        bait.configure(inner / ".git/config")
        write_files(
            inner, {"README.md": CHANGED, "new.txt": "", ".gitattributes": "* diff=bait filter=bait\n"}
        )
        if planted == "file":
            (inner / ".git").rename(tree.path / f"{name}-directory")
            (inner / ".git").write_text(f"gitdir: {tree.path}/{name}-directory\n")
    look_around(tree)
    assert not bait.was_taken


def test_a_filter_of_the_repository_sees_no_keys(
    tree: BuilderTree, bait: Bait, monkeypatch: pytest.MonkeyPatch
) -> None:
    bait.configure(tree.common_dir / "config")
    for name in ("ANTHROPIC_API_KEY", "SSH_AUTH_SOCK", "MY_SECRET", "GIT_SSH_COMMAND", "AF_MCP_TOKEN"):
        monkeypatch.setenv(name, "the-architects-own")
    write_files(tree.path, {".gitattributes": "*.md filter=bait\n", "README.md": CHANGED})
    tree.run("diff", "HEAD", "--")
    seen = bait.trace.read_text().splitlines()
    assert [line for line in seen if "the-architects-own" in line] == []
    assert any(line.startswith("PATH=") for line in seen)
    assert any(line.startswith("HOME=") for line in seen)


def test_a_head_that_cannot_be_read_is_an_error(tree: BuilderTree) -> None:
    (tree.git_dir / "HEAD").unlink()
    os.mkfifo(tree.git_dir / "HEAD")
    with pytest.raises(AgentFarmError, match="HEAD"):
        tree.checked_out()
