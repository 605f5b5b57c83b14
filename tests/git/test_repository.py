"""The repository is found from everywhere, and where there is none the next command is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_farm.errors import AgentFarmError, NotFound, ToolMissing
from agent_farm.git.git_process import GitError, raise_git_error, run_git
from agent_farm.git.ignoring import keep_apart, leave_to_git
from agent_farm.git.registrations import INCLUDED
from agent_farm.git.repository import Repository, find_repository
from tests.gitrepo import commit_files, git, make_repo

NAMES = ["with space", "ünï", "#(touch x)", "#{pane_id};", "-rf", "two\nlines", "$HOME", "~", "a'b\"c", "*"]


def test_the_main_checkout_is_found_from_a_subdirectory(repo: Path) -> None:
    (repo / "a/b").mkdir(parents=True)
    found = find_repository(repo / "a/b")
    assert found == Repository(repo, repo / ".git", repo, "a/b", repo / ".git")


def test_the_main_checkout_is_found_from_a_linked_worktree(repo: Path) -> None:
    git(repo, "worktree", "add", "-q", ".builders/x")
    (repo / ".builders/x/sub").mkdir()
    found = find_repository(repo / ".builders/x/sub")
    assert found == Repository(repo, repo / ".git", repo / ".builders/x", "sub", repo / ".git")


@pytest.mark.parametrize("name", NAMES)
def test_any_path_will_do(tmp_path: Path, name: str) -> None:
    root = make_repo(tmp_path / name)
    git(root, "worktree", "add", "-q", ".builders/x")
    for cwd in (root, root / ".builders/x"):
        found = find_repository(cwd)
        assert (found.root, found.checkout) == (root, cwd)
        with pytest.raises(NotFound):
            found.resolve_commit("nope")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("linked", [None, "sub/.builders/x", "../far"])
def test_a_submodule_is_a_repository(repo: Path, tmp_path: Path, linked: str | None) -> None:
    make_repo(tmp_path / "other")
    git(repo, "submodule", "add", "-q", str(tmp_path / "other"), "sub")
    if linked:
        git(repo / "sub", "worktree", "add", "-q", str(repo / linked))
    found = find_repository(repo / (linked or "sub"))
    assert found.root == repo / "sub"
    assert found.common_dir == repo / ".git/modules/sub"


def test_a_git_directory_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "main").mkdir()
    git(tmp_path / "main", "init", "-q", "--separate-git-dir", str(tmp_path / "kept"))
    commit_files(tmp_path / "main", {"a": "a"})
    git(tmp_path / "main", "worktree", "add", "-q", ".builders/x")
    assert find_repository(tmp_path / "main/.builders/x").root == tmp_path / "main"
    git(tmp_path / "main", "worktree", "add", "-q", str(tmp_path / "far"))
    with pytest.raises(AgentFarmError, match="main checkout"):
        find_repository(tmp_path / "far")


def test_git_variables_of_a_hook_do_not_matter(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repo(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.bare")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    found = find_repository(repo)
    assert found.root == repo
    with pytest.raises(NotFound):
        found.resolve_commit("nope")


def test_identity_and_ssh_settings_are_kept(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Someone")
    assert run_git(repo, "var", "GIT_AUTHOR_IDENT").startswith("Someone <")


def message_of(cwd: Path) -> tuple[str, str | None]:
    with pytest.raises(AgentFarmError) as caught:
        find_repository(cwd)
    return caught.value.what, caught.value.hint


def test_outside_a_repository(tmp_path: Path) -> None:
    assert message_of(tmp_path) == (f"{tmp_path} is not in a git repository", "git init")


def test_a_bare_repository_without_a_worktree(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "b.git")
    what, hint = message_of(tmp_path / "b.git")
    assert "has no worktree" in what
    assert hint == f"git -C {tmp_path}/b.git worktree add {tmp_path}/main main"


@pytest.fixture
def bare(repo: Path, tmp_path: Path) -> Path:
    """With worktrees of a branch that sorts first, of a builder before all of them, and of its own branch."""
    git(tmp_path, "clone", "-q", "--bare", str(repo), "b.git")
    git(tmp_path / "b.git", "worktree", "add", "-q", "../a")
    git(tmp_path / "b.git", "worktree", "add", "-q", "../a/.builders/0")
    git(tmp_path / "b.git", "worktree", "add", "-q", "../w", "main")
    return tmp_path / "b.git"


def test_one_worktree_of_a_bare_repository_is_the_home(bare: Path) -> None:
    places = [bare, bare / "refs", bare.parent / "a", bare.parent / "w"]
    assert {find_repository(place).root for place in places} == {bare.parent / "w"}
    assert find_repository(bare.parent / "a").checkout == bare.parent / "a"
    assert find_repository(bare).git_dir == bare / "worktrees/w"
    git(bare.parent / "w", "switch", "-q", "-c", "other")
    assert find_repository(bare).root == bare.parent / "a"  # nothing was kept in the other yet


def test_the_home_stays_once_something_is_kept_in_it(bare: Path) -> None:
    git(bare, "worktree", "lock", "--reason", "on a stick", "../w")
    keep_apart(find_repository(bare))
    git(bare.parent / "w", "switch", "-q", "-c", "other")
    keep_apart(find_repository(bare))
    assert find_repository(bare).root == bare.parent / "w"
    refused = subprocess.run(["git", "worktree", "remove", "w"], cwd=bare, capture_output=True, text=True)
    assert "on a stick, home of agent-farm" in refused.stderr
    leave_to_git(find_repository(bare))
    assert (bare / "worktrees/w/locked").read_text() == "on a stick\n"
    assert find_repository(bare).root == bare.parent / "a"


def test_a_home_that_does_not_name_its_repository_is_refused(bare: Path) -> None:
    other = make_repo(bare.parent / "other")
    (bare.parent / "w/.git").write_text(f"gitdir: {other}/.git\n")
    what, hint = message_of(bare)
    assert "do not refer to each other" in what
    assert hint == f"git -C {bare} worktree repair {bare.parent}/w"


def test_inside_the_git_directory(repo: Path) -> None:
    assert "inside a git directory" in message_of(repo / ".git/refs")[0]


def test_in_a_directory_that_is_gone(repo: Path) -> None:
    assert "does not exist" in message_of(repo / "gone")[0]


def test_in_a_worktree_whose_git_directory_is_gone(repo: Path) -> None:
    (repo / "lost").mkdir()
    (repo / "lost/.git").write_text("gitdir: /nowhere\n")
    what, hint = message_of(repo / "lost")
    assert "is gone" in what
    assert hint is not None


def test_of_another_user(repo: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a directory away")
    for path in [repo, repo / ".git"]:
        os.chown(path, 12345, 12345)
    what, hint = message_of(repo)
    assert "does not trust" in what
    assert hint is not None
    assert hint.startswith("git config --global --add safe.directory")


def test_with_another_hash(tmp_path: Path) -> None:
    """SHA-256 names of objects are longer; nothing else is different."""
    git(tmp_path, "init", "-q", "--object-format=sha256")
    commit_files(tmp_path, {"a": ""})
    found = find_repository(tmp_path)
    assert len(found.head().commit) == 64


def test_without_git(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the repository is, its files say; what they hold is git's to tell."""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolMissing, match="not installed"):
        find_repository(repo).resolve_commit("HEAD")


UNUSUAL = [
    ("core.bare", "true"), ("core.worktree", "../elsewhere"), ("include.path", "more"),
    ("includeIf.onbranch:main.path", "more"), ("includeIf.gitdir:./worktrees/x.path", "more"),
    ("extensions.worktreeConfig", "true"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), UNUSUAL)
@pytest.mark.parametrize("linked", [False, True])
def test_what_is_configured_is_left_to_git(
    repo: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, linked: bool
) -> None:
    git(repo, "worktree", "add", "-q", ".builders/x")
    git(repo, "config", name, value)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolMissing):
        find_repository(repo / ".builders/x" if linked else repo)


def test_sparse_builders_leave_it_to_the_files(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `af` itself configures for them makes no command slower."""
    git(repo, "worktree", "add", "-q", ".builders/x")
    git(repo, "config", "includeIf.gitdir:./worktrees/x.path", INCLUDED)
    git(repo, "config", "user.name", "somebody")
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_repository(repo / ".builders/x").root == repo
    assert find_repository(repo).root == repo


def test_the_files_say_what_git_would(repo: Path, tmp_path: Path) -> None:
    """In a subdirectory, a linked worktree, through a link, and of a repository inside of another."""
    git(repo, "worktree", "add", "-q", ".builders/x")
    git(repo, "worktree", "add", "-q", str(tmp_path / "far"))
    make_repo(repo / "inner")
    (tmp_path / "link").symlink_to(repo / "a")
    for path in (repo / "a/b", repo / ".builders/x/a", repo / ".git/worktrees", tmp_path / "far/a"):
        path.mkdir(parents=True, exist_ok=True)
    for cwd in (
        repo, repo / "a/b", repo / ".builders/x", repo / ".builders/x/a", tmp_path / "far/a",
        repo / "inner", tmp_path / "link/b",
    ):  # fmt: skip
        found = find_repository(cwd)
        git(found.root, "config", "--global", "safe.directory", "*")
        git(found.root, "config", "extensions.worktreeConfig", "true")
        assert find_repository(cwd) == found
        git(found.root, "config", "--unset", "extensions.worktreeConfig")


def test_a_worktree_that_names_another_repository_is_no_way_into_that(repo: Path) -> None:
    git(repo, "worktree", "add", "-q", ".builders/x")
    planted = make_repo(repo / ".builders/x/evil")
    (repo / ".builders/x/.git").write_text(f"gitdir: {planted}/.git\n")
    git(planted, "config", "core.worktree", str(repo / ".builders/x"))
    with pytest.raises(AgentFarmError, match="is not a worktree of"):
        find_repository(repo / ".builders/x")


def test_the_head_of_a_branch_and_a_detached_one(repo: Path) -> None:
    found = find_repository(repo)
    commit = git(repo, "rev-parse", "HEAD")
    assert (found.head().commit, found.head().branch) == (commit, "main")
    git(repo, "checkout", "-q", "--detach")
    assert (found.head().commit, found.head().branch) == (commit, None)


def test_an_empty_repository_has_no_head(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    with pytest.raises(AgentFarmError, match="no commit yet") as caught:
        find_repository(tmp_path).head()
    assert "git commit" in (caught.value.hint or "")


def test_revisions_are_resolved_and_unknown_ones_get_the_nearest_name(repo: Path) -> None:
    found = find_repository(repo)
    commit = git(repo, "rev-parse", "HEAD")
    git(repo, "tag", "v1.0")
    for ref in ("main", "HEAD", "v1.0", commit[:10], "HEAD^{}"):
        assert found.resolve_commit(ref) == commit
    with pytest.raises(NotFound) as caught:
        found.resolve_commit("mian")
    assert "main" in (caught.value.why or "")
    for ref in ("", "--all", "a\0b", "HEAD~5", "HEAD:README.md"):
        with pytest.raises(NotFound):
            found.resolve_commit(ref)


def test_branches(repo: Path) -> None:
    found = find_repository(repo)
    assert found.branch_commit("main") == git(repo, "rev-parse", "HEAD")
    assert found.branch_commit("main~0") is None
    assert found.branch_commit("nope") is None
    for name in ("builder/task-1", "ö"):
        assert found.is_valid_branch(name)
    for name in ("", "-x", "HEAD", "a..b", "a b", "a.lock", "@{-1}", "a\0", "/a"):
        assert not found.is_valid_branch(name)


def test_what_a_commit_holds(repo: Path) -> None:
    names = ["dir/a", "dir/two\nlines", "dir/ö", "-x", "deep/er/b"]
    commit = commit_files(repo, {name: f"{name}\r\n" for name in names})
    found = find_repository(repo)
    assert found.list_directory(commit, "dir/") == ["a", "two\nlines", "ö"]
    assert found.list_directory(commit, "nope") == []
    assert found.list_directory(commit, "dir/a") == []
    asked = [*names, "no\nmissing\n", "dir", "deep/er/", "nope", ""]
    kinds = found.entry_kinds(commit, asked)
    assert list(kinds) == asked
    assert list(kinds.values()) == ["blob"] * 5 + [None, "tree", "tree", None, "tree"]
    assert found.entry_kind(commit, "dir/a") == "blob"
    assert found.read_blob(commit, "dir/two\nlines") == b"dir/two\nlines\r\n"
    with pytest.raises(NotFound):
        found.read_blob(commit, "nope")


def test_an_error_carries_gits_meaning(repo: Path) -> None:
    with pytest.raises(GitError) as caught:
        run_git(repo, "switch", "nope")
    assert caught.value.what == "git switch failed"
    assert caught.value.why == "invalid reference: nope"
    assert caught.value.status == 128


def test_too_many_open_files_are_not_mended_by_installing_git(tmp_path: Path) -> None:
    program = """
import contextlib, os, resource, sys
from pathlib import Path
from agent_farm.errors import ToolMissing
from agent_farm.git.git_process import run_git
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
with contextlib.suppress(OSError):
    while True:
        os.dup(0)
try:
    run_git(Path.cwd(), "version")
except ToolMissing as error:
    print(error.why, "|", error.hint)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "Too many open files | ulimit -n 4096\n"


def test_an_error_of_each_file_is_told_of_a_few(repo: Path) -> None:
    lines = b"".join(b"error: unable to write file %d\n" % number for number in range(100))
    with pytest.raises(GitError) as caught:
        raise_git_error(["read-tree"], 128, lines)
    why = (caught.value.why or "").splitlines()
    assert (why[0], why[-1], len(why)) == ("unable to write file 0", "… 95 more lines", 6)
    assert caught.value.hint == "df -h ."
