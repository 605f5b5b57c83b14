"""`--branch` with a branch that only a remote has: made as `git switch` makes it, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.conftest import Spawned
from tests.farm.shims import make
from tests.gitrepo import commit_files, git

Spawn = Callable[..., Spawned]


@pytest.fixture
def shared(repo: Path) -> str:
    """The commit at which `origin` has `feature`; there is no such local branch."""
    git(repo, "switch", "-q", "-c", "feature")
    commit = commit_files(repo, {"feature.txt": "begun\n"}, "begun")
    git(repo, "switch", "-q", "main")
    add_remote(repo, "origin")
    git(repo, "branch", "-q", "-D", "feature")
    return commit


def add_remote(repo: Path, name: str) -> None:
    git(repo, "clone", "-q", "--bare", str(repo), str(repo.parent / name))
    git(repo, "remote", "add", name, str(repo.parent / name))
    git(repo, "fetch", "-q", name)


def branches(repo: Path) -> list[str]:
    return git(repo, "for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()


def settings_of(repo: Path) -> str:
    return git(repo, "config", "--get-regexp", r"^branch\.feature\.", check=False)


@pytest.mark.parametrize("name", ["feature", "origin/feature"])
def test_the_local_branch_is_made_and_follows_it(
    spawn: Spawn, af: Af, repo: Path, shared: str, name: str
) -> None:
    done = af("spawn", "--shell", "--runtime", "demo", "--branch", name, "--dry-run")
    assert "feature is made from origin/feature, and follows it" in done.stderr
    builder = spawn("--shell", "--branch", name)
    assert (builder.branch, builder.tip) == ("feature", shared)
    assert git(repo, "rev-parse", "--abbrev-ref", "feature@{upstream}") == "origin/feature"
    commit_files(builder.worktree, {"more.txt": "x\n"}, "more")
    assert "more.txt" in af("diff", builder.id, "--stat").stdout
    second = af("spawn", "--shell", "--runtime", "demo", "--branch", name)
    assert second.returncode == 2
    assert "error: The branch feature" in second.stderr


@pytest.mark.parametrize("call", ["worktree add", "read-tree", "set-upstream-to", "new-session"])
def test_a_spawn_that_fails_takes_the_branch_along(
    tmp_path: Path, repo: Path, af: Af, shared: str, call: str
) -> None:
    place = tmp_path / "shim"
    program = "tmux" if call == "new-session" else "git"
    env = make(place, program, 0, ":")
    script = place / program
    status = "kill -9 $PPID" if call == "set-upstream-to" else "exit 128"
    failing = f"case \"$*\" in *'{call}'*) echo 'fatal: no such luck' >&2; {status};; esac\nexec "
    script.write_text(script.read_text().replace("exec ", failing))
    failed = af("spawn", "--shell", "--runtime", "demo", "--branch", "feature", env=env)
    assert failed.returncode != 0
    af("status")  # which undoes what a killed spawn left
    assert branches(repo) == ["main"]
    assert settings_of(repo) == ""
    assert af("status").stderr.startswith("No builders.")


def test_a_failed_spawn_does_not_delete_a_branch_that_somebody_made_meanwhile(
    tmp_path: Path, repo: Path, af: Af, shared: str
) -> None:
    place = tmp_path / "shim"
    env = make(place, "git", 0, ":")
    script = place / "git"
    real = script.read_text().rpartition("exec '")[2].partition("'")[0]
    made = f"'{real}' branch -q feature origin/feature"
    first = f'case "$*" in *update-ref*refs/heads/feature*) {made};; esac\nexec '
    script.write_text(script.read_text().replace("exec ", first))
    failed = af("spawn", "--shell", "--runtime", "demo", "--branch", "feature", env=env)
    assert failed.returncode == 1
    assert "feature already exists" in failed.stderr
    assert branches(repo) == ["feature", "main"]
    assert "origin" in settings_of(repo)
    assert af("status").stderr.startswith("No builders.")


def test_a_branch_that_was_there_stays_after_a_spawn_that_fails(
    tmp_path: Path, repo: Path, af: Af, shared: str
) -> None:
    git(repo, "branch", "-q", "--track", "feature", "origin/feature")
    place = tmp_path / "shim"
    env = make(place, "git", 0, ":")
    script = place / "git"
    failing = 'case "$*" in *read-tree*) exit 128;; esac\nexec '
    script.write_text(script.read_text().replace("exec ", failing))
    assert af("spawn", "--shell", "--runtime", "demo", "--branch", "feature", env=env).returncode == 1
    assert branches(repo) == ["feature", "main"]
    assert "origin" in settings_of(repo)


def test_what_is_not_clear_is_refused_with_a_command_that_clears_it(repo: Path, af: Af, shared: str) -> None:
    def refused(name: str) -> str:
        done = af("spawn", "--shell", "--runtime", "demo", "--branch", name)
        assert done.returncode in (1, 2)
        return done.stderr

    assert "The nearest name is origin/feature." in refused("orgin/feature")
    assert "hint: git branch --all" in refused("nope")

    git(repo, "branch", "-q", "feature", "origin/feature")
    add_remote(repo, "fork")
    git(repo, "branch", "-q", "-D", "feature")
    told = refused("feature")
    assert "fork/feature, origin/feature: name one of them." in told
    (hint,) = (line for line in told.splitlines() if line.startswith("hint: git "))
    git(repo, *hint.split()[2:])
    assert branches(repo) == ["feature", "main"]

    git(repo, "update-ref", "refs/heads/feature", "main")
    assert "is not where origin/feature is" in refused("origin/feature")
