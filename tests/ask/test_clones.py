"""Git sources: real repositories over file://, pinned, updated, and never deleted with work in them."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from agent_farm.errors import AgentFarmError, UsageError, WorkWouldBeLost
from agent_farm.git.git_process import GitError
from tests.ask.stage import Stage
from tests.gitrepo import commit_files, git, make_repo


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "remote", {"a.txt": "one\n"})


def url(remote: Path) -> str:
    return f"file://{remote}"


def test_clone_lies_under_sources_git_and_progress_is_told(stage: Stage, remote: Path) -> None:
    source = stage.sources.add("lib", url(remote))
    assert source.path == stage.config.directory / "sources" / "git" / "lib"
    assert (source.path / "a.txt").read_text() == "one\n"
    assert any("fetching" in line for line in stage.told)
    assert any("first" in line for line in stage.told)
    assert stage.config.sources["lib"] == {"type": "git", "url": url(remote)}


def test_bare_repository_and_local_path_can_be_cloned(stage: Stage, remote: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    git(tmp_path, "clone", "-q", "--bare", str(remote), str(bare))
    assert stage.sources.add("bare", str(bare)).kind == "git"
    assert stage.sources.add("local", str(remote), kind="git").kind == "git"
    assert stage.sources.add("live", str(remote)).kind == "directory"


def test_branch_is_followed(stage: Stage, remote: Path) -> None:
    git(remote, "switch", "-q", "-c", "next")
    commit_files(remote, {"a.txt": "next\n"})
    git(remote, "switch", "-q", "main")
    source = stage.sources.add("lib", url(remote), branch="next")
    assert (source.path / "a.txt").read_text() == "next\n"
    git(remote, "switch", "-q", "next")
    commit_files(remote, {"a.txt": "later\n"})
    stage.sources.update("lib")
    assert (source.path / "a.txt").read_text() == "later\n"


@pytest.mark.parametrize("length", [40, 8])
def test_commit_is_pinned(stage: Stage, remote: Path, length: int) -> None:
    first = git(remote, "rev-parse", "HEAD")
    commit_files(remote, {"a.txt": "two\n"})
    source = stage.sources.add("lib", url(remote), commit=first[:length])
    assert (source.path / "a.txt").read_text() == "one\n"
    commit_files(remote, {"a.txt": "three\n"})
    stage.sources.update("lib")
    assert (source.path / "a.txt").read_text() == "one\n"


def test_rewritten_history_is_followed(stage: Stage, remote: Path) -> None:
    source = stage.sources.add("lib", url(remote))
    commit_files(remote, {"b.txt": "b\n"})
    git(remote, "reset", "-q", "--hard", "HEAD^")
    commit_files(remote, {"c.txt": "c\n"})
    git(remote, "commit", "-q", "--amend", "-m", "rewritten")
    stage.sources.update("lib")
    assert sorted(path.name for path in source.path.iterdir()) == [".git", "a.txt", "c.txt"]


def test_lost_clone_is_made_anew(stage: Stage, remote: Path) -> None:
    source = stage.sources.add("lib", url(remote))
    source.path.rename(stage.root / "lost")
    with pytest.raises(AgentFarmError, match="cannot be read") as caught:
        stage.runner.ask(sources=["lib"], question="Why?")
    assert caught.value.hint == "af sources update lib"
    stage.sources.update("lib")
    assert (source.path / "a.txt").exists()


@pytest.mark.parametrize(
    ("path", "pin"), [("/nowhere", {}), ("", {"branch": "nowhere"}), ("", {"commit": "0" * 40})]
)
def test_failed_clone_leaves_nothing(stage: Stage, remote: Path, path: str, pin: dict[str, str]) -> None:
    with pytest.raises(GitError):
        stage.sources.add("lib", url(remote) + path, **pin)  # type: ignore[arg-type]
    assert stage.sources.list() == ()
    assert [path for path in stage.sources.clones.iterdir() if path.suffix != ".lock"] == []


def test_ended_clone_leaves_nothing(stage: Stage, tmp_path: Path) -> None:
    """SIGTERM while the remote keeps git waiting."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x.git"
        process = subprocess.Popen([sys.executable, "-m", "agent_farm", "sources", "add", "lib", url])
        connection, _ = silent.accept()
        process.terminate()
        assert process.wait(timeout=120) == 143
        connection.close()
    assert stage.sources.list() == ()
    assert [path for path in stage.sources.clones.iterdir() if path.suffix != ".lock"] == []


@pytest.mark.parametrize("branch", ["--upload-pack=touch pwned", "-f", "+main", "a..b", "a b", "a:b"])
def test_hostile_branches_are_refused(stage: Stage, remote: Path, branch: str) -> None:
    with pytest.raises(UsageError, match="cannot be a branch"):
        stage.sources.add("lib", url(remote), branch=branch)


@pytest.mark.parametrize("commit", ["HEAD", "--all", "xyz", "abc"])
def test_hostile_commits_are_refused(stage: Stage, remote: Path, commit: str) -> None:
    with pytest.raises(UsageError, match="is not a commit"):
        stage.sources.add("lib", url(remote), commit=commit)


def test_protocols_of_the_users_git_configuration_stay_shut(stage: Stage, home: Path) -> None:
    """An `insteadOf` that leads to a remote helper does not run it."""
    with (home / ".gitconfig").open("a") as file:
        file.write(f'[url "ext::touch {stage.root}/pwned "]\n\tinsteadOf = https://evil/\n')
        file.write("[protocol]\n\tallow = always\n")
    with pytest.raises(GitError, match="cannot fetch"):
        stage.sources.add("lib", "https://evil/x")
    assert not (stage.root / "pwned").exists()


def test_links_out_of_a_repository_are_plain_files(stage: Stage, remote: Path) -> None:
    secret = stage.file("secret", "private key")
    (remote / "evil").symlink_to(secret)
    git(remote, "add", ".")
    git(remote, "commit", "-q", "-m", "evil")
    source = stage.sources.add("lib", url(remote))
    assert not (source.path / "evil").is_symlink()
    assert (source.path / "evil").read_text() == str(secret)


def test_update_keeps_what_somebody_changed(stage: Stage, remote: Path) -> None:
    source = stage.sources.add("lib", url(remote))
    (source.path / "a.txt").write_text("mine\n")
    commit_files(remote, {"a.txt": "two\n"})
    with pytest.raises(WorkWouldBeLost) as caught:
        stage.sources.update("lib")
    assert any("a.txt" in line for line in caught.value.evidence)
    assert (source.path / "a.txt").read_text() == "mine\n"


@pytest.mark.parametrize("work", ["file", "commit", "stash"])
def test_removing_keeps_a_clone_with_work_in_it(stage: Stage, remote: Path, work: str) -> None:
    source = stage.sources.add("lib", url(remote))
    (source.path / "a.txt").write_text("mine\n")
    if work == "commit":
        git(source.path, "commit", "-q", "-a", "-m", "mine")
    if work == "stash":
        git(source.path, "stash")
    kept = stage.sources.remove("lib")
    assert kept is not None
    assert kept.is_dir()
    assert not source.path.exists()
    assert stage.sources.add("lib", url(remote)).path == source.path


def test_removing_discards_a_clean_clone(stage: Stage, remote: Path) -> None:
    source = stage.sources.add("lib", url(remote))
    assert stage.sources.remove("lib") is None
    assert not source.path.exists()
    assert (remote / "a.txt").exists()


def test_removing_follows_no_link(stage: Stage, remote: Path, app: Path) -> None:
    source = stage.sources.add("lib", url(remote))
    source.path.rename(stage.root / "elsewhere")
    source.path.symlink_to(app)
    assert stage.sources.remove("lib") is None, "a link is nobody's work"
    assert (app / "main.py").exists()
    assert not source.path.is_symlink()


def test_other_kinds_have_nothing_to_update(stage: Stage, app: Path) -> None:
    with pytest.raises(UsageError, match="read in place"):
        stage.sources.update("app")
