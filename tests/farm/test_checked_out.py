"""An agent that switches, creates or detaches a branch is normal: each command says what it looks at."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Af
from tests.farm.conftest import Spawned, status_of
from tests.gitrepo import commit_files, git, write_files

pytestmark = pytest.mark.slow

Spawn = Callable[..., Spawned]


@pytest.fixture
def builder(spawn: Spawn) -> Spawned:
    """With one commit on its own branch."""
    made = spawn("--shell")
    commit_files(made.worktree, {"own.txt": "own\n"})
    return made


def state(builder: Spawned) -> dict[str, Any]:
    return status_of(builder.af, builder.id)["git"]


def row(builder: Spawned) -> str:
    return builder.af("status", builder.id).stdout


def test_status_and_diff_name_another_branch_and_look_at_it(builder: Spawned, af: Af) -> None:
    assert (state(builder)["branch"], state(builder)["commit"]) == (builder.branch, builder.tip)
    builder.git("switch", "-q", "-c", "feature/x")
    tip = commit_files(builder.worktree, {"more.txt": "more\n"})
    found = state(builder)
    assert (found["branch"], found["commit"], found["ahead"]) == ("feature/x", tip, 2)
    assert "+2 on feature/x" in row(builder)
    for options in ((), ("--committed",)):
        shown = af("diff", builder.id, *options)
        assert ("+more" in shown.stdout, "+own" in shown.stdout) == (True, True)
        assert f"is on feature/x, not on {builder.branch}" in shown.stderr
    answer = json.loads(af("diff", builder.id, "--json").stdout)
    assert (answer["branch"], answer["commit"]) == ("feature/x", tip)


def test_status_and_diff_name_a_detached_head(builder: Spawned, af: Af) -> None:
    builder.git("checkout", "-q", "--detach")
    tip = commit_files(builder.worktree, {"more.txt": "more\n"})
    found = state(builder)
    assert (found["branch"], found["commit"], found["ahead"]) == (None, tip, 2)
    assert "+2 detached" in row(builder)
    shown = af("diff", builder.id, "--committed")
    assert "+more" in shown.stdout
    assert f"is detached at {tip[:10]}" in shown.stderr


def test_status_names_a_rebase(builder: Spawned, repo: Path) -> None:
    commit_files(repo, {"own.txt": "theirs\n"})
    git(builder.worktree, "rebase", "main", check=False)
    assert state(builder)["operation"] == "rebase"
    assert " rebase" in row(builder)
    assert "detached" not in row(builder)


def test_what_is_checked_out_has_landed_or_not(builder: Spawned, repo: Path) -> None:
    git(repo, "merge", "-q", builder.branch)
    assert state(builder)["landed"] is True
    builder.git("switch", "-q", "-c", "feature/x")
    assert state(builder)["landed"] is True
    assert " landed, on feature/x" in row(builder)  # not "landed on feature/x"
    commit_files(builder.worktree, {"more.txt": "more\n"})
    assert state(builder)["landed"] is False


def test_conflicts_are_those_of_what_is_checked_out(builder: Spawned, af: Af, repo: Path) -> None:
    commit_files(repo, {"README.md": "base\n"})
    assert af("conflicts").returncode == 0
    builder.git("switch", "-q", "-c", "feature/x")
    commit_files(builder.worktree, {"README.md": "theirs\n"})
    assert af("conflicts").stdout.split() == [builder.id, "main", "README.md"]
    builder.git("checkout", "-q", "--detach")
    builder.git("branch", "-q", "-D", "feature/x", builder.branch)
    assert af("conflicts").stdout.split() == [builder.id, "main", "README.md"]


def record_of(builder: Spawned) -> dict[str, Any]:
    return dict(status_of(builder.af, builder.id))


def test_after_a_rename_the_record_follows(builder: Spawned, af: Af) -> None:
    builder.git("branch", "-m", "first")
    builder.git("branch", "-m", "fix/two")
    shown = af("status", builder.id)
    assert f"{builder.branch} is fix/two now" in shown.stderr
    assert " on fix/two" not in shown.stdout
    assert (record_of(builder)["branch"], record_of(builder)["new_branch"]) == ("fix/two", True)
    assert af("status", builder.id).stderr == ""
    assert f"renamed: its branch, from {builder.branch} to fix/two" in af("logs", builder.id).stdout


def test_a_removal_follows_a_rename_too(builder: Spawned, af: Af, repo: Path) -> None:
    git(repo, "merge", "-q", builder.branch)
    builder.git("branch", "-m", "fix/two")
    af("stop", builder.id)
    done = af("prune", builder.id, "--json")
    assert json.loads(done.stdout)["removed"][0]["branch"] == "fix/two"
    assert git(repo, "branch", "--format=%(refname:short)") == "main"


def test_a_rename_is_followed_from_a_detached_head(builder: Spawned, af: Af, repo: Path) -> None:
    builder.git("branch", "-m", "first")
    builder.git("branch", "-m", "fix/two")
    builder.git("switch", "-q", "--detach")
    assert af("doctor").returncode == 1
    assert f"the branch of {builder.id} is fix/two" in af("doctor", "--fix").stdout
    assert af("doctor").returncode == 0
    assert (record_of(builder)["branch"], record_of(builder)["new_branch"]) == ("fix/two", True)


@pytest.mark.parametrize("case", ["there", "base", "others", "elsewhere", "detached"])
def test_a_record_keeps_its_branch(builder: Spawned, spawn: Spawn, repo: Path, case: str) -> None:
    """While that is there, or when the one that is checked out may be somebody else's."""
    if case == "there":
        builder.git("switch", "-q", "-c", "feature")
    if case == "base":
        git(repo, "checkout", "-q", "--detach")
        builder.git("switch", "-q", "main")
    if case == "others":
        other = spawn("--shell")
        other.git("checkout", "-q", "--detach")
        builder.git("switch", "-q", other.branch)
    if case == "elsewhere":
        builder.git("switch", "-q", "--orphan", "feature")
        commit_files(builder.worktree, {"alone.txt": "x\n"})
    if case == "detached":
        builder.git("checkout", "-q", "--detach")
    if case != "there":
        builder.git("branch", "-q", "-D", builder.branch)
    assert record_of(builder)["branch"] == builder.branch


def test_a_branch_that_took_the_place_of_the_builders_is_not_afs_to_delete(builder: Spawned) -> None:
    builder.git("switch", "-q", "-c", "feature")
    builder.git("branch", "-q", "-D", builder.branch)
    assert (record_of(builder)["branch"], record_of(builder)["new_branch"]) == ("feature", False)


def test_a_branch_without_a_commit(builder: Spawned, af: Af) -> None:
    builder.git("switch", "-q", "--orphan", "fresh")
    assert state(builder)["missing"] == "branch"
    assert "? branch gone on fresh" in row(builder)
    done = af("diff", builder.id)
    assert (done.returncode, "has fresh checked out, which has no commit" in done.stderr) == (1, True)
    assert f"switch {builder.branch}" in done.stderr
    assert "not compared: there is no fresh" in af("conflicts").stdout


def test_a_planted_git_directory_runs_nothing(builder: Spawned, af: Af, repo: Path, tmp_path: Path) -> None:
    """Written by an agent that may only edit files; the architect's variables are what it is after."""
    evil, trace = builder.worktree / "evil", tmp_path / "ran"
    write_files(evil, {"HEAD": "ref: refs/heads/main\n", "objects/x/y": "", "refs/heads/y": ""})
    write_files(
        evil,
        {
            "config": "[core]\n\trepositoryformatversion = 0\n"
            f"\tworktree = {builder.worktree}\n\tfsmonitor = \"sh -c 'env > {trace}'\"\n"
        },
    )
    (builder.worktree / ".git").write_text(f"gitdir: {evil}\n")
    found = state(builder)
    assert (found["problem"], found["dirty"], found["ahead"]) == ("not ours", None, None)
    assert str(evil) in found["reason"]
    assert "not ours" in row(builder)
    done = af("diff", builder.id)
    assert (done.returncode, str(evil) in done.stderr) == (1, True)
    assert f"git worktree repair {builder.worktree}" in done.stderr
    assert f"not compared: {builder.worktree} is not a worktree of this repository" in af("conflicts").stdout
    for words in (("status", "--json", "--fresh"), ("diff", "--json", builder.id), ("conflicts", "--json")):
        assert json.loads(af(*words).stdout)
    assert not trace.exists()
    git(repo, "worktree", "repair", str(builder.worktree))
    assert "+1 ?1" in row(builder)


def test_a_worktree_that_is_gone_is_a_word(builder: Spawned, af: Af) -> None:
    shutil.rmtree(builder.worktree)
    assert state(builder)["problem"] == "no tree"
    assert "no tree" in row(builder)
    assert "+own" in af("diff", builder.id).stdout


def test_status_ends_in_time_when_git_never_answers(spawn: Spawn, af: Af, tmp_path: Path) -> None:
    """One deadline for all questions: the worktrees' and the one about commits are begun, and no other."""
    for _ in range(2):
        commit_files(spawn("--shell").worktree, {"own.txt": "own\n"})
    log, shim = tmp_path / "calls", tmp_path / "bin/git"
    shim.parent.mkdir()
    shim.write_text(f"#!/bin/sh\necho x >> {log}\nexec sleep 600\n")
    shim.chmod(0o755)
    env = {"PATH": f"{shim.parent}:{os.environ['PATH']}"}
    assert json.loads(af("status", "--json").stdout)["builders"][0]["git"]["ahead"] == 1
    older = json.loads(af("status", "--json", env=env).stdout)["builders"]
    assert [one["git"]["ahead"] for one in older] == [1, 1]
    assert len(log.read_text().splitlines()) == 3


def test_what_was_never_answered_is_not_known(builder: Spawned, af: Af, tmp_path: Path) -> None:
    shim = tmp_path / "bin/git"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\nexec sleep 600\n")
    shim.chmod(0o755)
    (builder.repo / ".agent-farm/git-states.json").unlink(missing_ok=True)
    done = af("status", env={"PATH": f"{shim.parent}:{os.environ['PATH']}"}, fork=False)
    assert (done.returncode, " ? " in done.stdout) == (0, True)


def test_diff_in_a_sparse_builder(builder: Spawned, af: Af) -> None:
    commit_files(builder.worktree, {"in/a": "a\n", "out/b": "b\n"})
    for more in ("--no-sparse-index", "--sparse-index"):
        builder.git("sparse-checkout", "set", more, "in")
        write_files(builder.worktree, {"out/extra.md": "extra\n", "in/new.md": "new\n"})
        shown = af("diff", builder.id)
        assert (shown.returncode, "+extra" in shown.stdout, "+new" in shown.stdout) == (0, True, True)
        assert "-b" not in shown.stdout
        assert "out/extra.md" in af("diff", "--stat", builder.id).stdout


def test_names_in_a_diff_are_as_they_are(builder: Spawned, af: Af) -> None:
    """Whatever the user's own diffs look like."""
    for name, value in (
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("core.quotePath", "true"),
    ):
        builder.git("config", "--global", name, value)
    commit_files(builder.worktree, {"notes-ü.txt": "x\n"})
    write_files(builder.worktree, {"ünt.txt": "x\n"})
    (builder.worktree / "bild-ä.png").write_bytes(bytes(range(256)))
    for options in ((), ("--committed",)):
        assert "+++ b/notes-ü.txt" in af("diff", builder.id, *options).stdout
    shown = af("diff", builder.id).stdout
    assert "Binary files /dev/null and b/bild-ä.png differ" in shown
    assert "diff --git a/ünt.txt b/ünt.txt" in shown
    assert "notes-ü.txt" in af("diff", builder.id, "--stat").stdout


def test_diff_passes_over_what_is_no_plain_file(builder: Spawned, af: Af, tmp_path: Path) -> None:
    os.mkfifo(builder.worktree / "pipe")
    git(builder.worktree, "init", "-q", "empty-repository")
    (builder.worktree / "link").symlink_to("/dev/zero")
    with (builder.worktree / "large").open("wb") as file:
        file.truncate(1 << 30)
    before = builder.git("status", "--porcelain")
    shown = af("diff", builder.id)
    assert shown.returncode == 0, shown.stderr
    assert "+/dev/zero" in shown.stdout
    assert "Binary files /dev/null and b/large differ" in shown.stdout
    assert builder.git("status", "--porcelain") == before
