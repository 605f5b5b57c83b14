"""See, land, foresee: what a refusal leaves, and what each strategy makes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.conftest import Spawned
from tests.farm.traces import traces
from tests.gitrepo import commit_files, git, write_files

Spawn = Callable[..., Spawned]
Committed = Callable[..., Spawned]


@pytest.fixture
def committed(spawn: Spawn) -> Committed:
    """A builder with one commit for each of the given sets of files."""

    def make(*commits: dict[str, str]) -> Spawned:
        builder = spawn("--shell")
        for number, files in enumerate(commits, 1):
            commit_files(builder.worktree, files, f"step {number}")
        return builder

    return make


def everything(repo: Path) -> tuple[str, ...]:
    """All that a refused merge must not change."""
    files = sorted(path for path in repo.glob("*") if path.is_file())
    return (
        git(repo, "for-each-ref"),
        git(repo, "symbolic-ref", "-q", "HEAD", check=False),
        git(repo, "status", "--porcelain", "--branch"),
        git(repo, "diff", "HEAD"),
        git(repo, "stash", "list"),
        *(f"{path.name}:{path.read_bytes()!r}" for path in files),
    )


def merge_refused(builder: Spawned, *options: str) -> str:
    before = everything(builder.repo)
    done = builder.af("merge", builder.id, *options)
    assert done.returncode == 1, done.stdout + done.stderr
    assert everything(builder.repo) == before
    return done.stderr


def log(repo: Path, *options: str) -> list[str]:
    return git(repo, "log", "--format=%s", *options).splitlines()


def test_diff_shows_committed_changed_and_untracked_files(committed: Committed, af: Af) -> None:
    builder = committed({"done.txt": "committed\n"})
    write_files(builder.worktree, {"README.md": "changed\n", "new.txt": "untracked\n"})
    shown = af("diff", builder.id).stdout
    assert all(line in shown for line in ("+committed", "+changed", "+untracked"))
    assert "+untracked" not in af("diff", builder.id, "--committed").stdout
    assert "3 files changed" in af("diff", builder.id, "--stat").stdout
    assert builder.git("status", "--porcelain") == "M README.md\n?? new.txt"


def test_diff_is_a_patch_byte_for_byte(committed: Committed, af: Af, repo: Path) -> None:
    """Files in another encoding, with carriage returns and control characters, in a strict locale."""
    builder = committed({"a.txt": "a\n"})
    content = b"caf\xe9 \x1b[31m \r\nno newline at the end"
    (builder.worktree / "latin.txt").write_bytes(content)
    patch = repo.parent / "work.patch"
    with patch.open("wb") as output:
        subprocess.run(
            [sys.executable, "-m", "agent_farm", "diff", builder.id],
            cwd=repo,
            env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
            stdout=output,
            check=True,
        )
    subprocess.run(["git", "apply", str(patch)], cwd=repo, check=True, capture_output=True)
    assert (repo / "latin.txt").read_bytes() == content


def test_diff_of_nothing_and_of_a_binary_file(committed: Committed, af: Af) -> None:
    builder = committed()
    done = af("diff", builder.id)
    assert (done.returncode, done.stdout) == (0, "")
    assert "has changed nothing" in done.stderr
    (builder.worktree / "image").write_bytes(bytes(range(256)))
    assert "Binary files" in af("diff", builder.id).stdout
    assert json.loads(af("diff", builder.id, "--json").stdout)["id"] == builder.id


@pytest.mark.parametrize(
    ("strategy", "subjects", "parents"),
    [
        ("merge", ["Merge {branch}", "step 2", "step 1", "theirs", "first"], 2),
        ("squash", ["Merge {branch}", "theirs", "first"], 1),
        ("rebase", ["step 2", "step 1", "theirs", "first"], 1),
    ],
)
def test_each_strategy(
    committed: Committed, af: Af, repo: Path, strategy: str, subjects: list[str], parents: int
) -> None:
    builder = committed({"one.txt": "1\n"}, {"two.txt": "2\n"})
    commit_files(repo, {"theirs.txt": "x\n"}, "theirs")
    tip = builder.tip

    done = af("merge", builder.id, "--strategy", strategy)

    assert done.returncode == 0, done.stderr
    assert log(repo, "--topo-order") == [subject.format(branch=builder.branch) for subject in subjects]
    assert len(git(repo, "log", "-1", "--format=%P").split()) == parents
    assert (repo / "one.txt").read_text() + (repo / "two.txt").read_text() == "1\n2\n"
    assert git(repo, "status", "--porcelain") == ""
    assert builder.tip == tip
    assert af("stop", builder.id).returncode == 0
    assert af("prune", builder.id).returncode == 0


def test_fast_forward_or_nothing(committed: Committed, af: Af, repo: Path) -> None:
    builder = committed({"one.txt": "1\n"})
    assert af("merge", builder.id, "--strategy", "ff").returncode == 0
    assert git(repo, "rev-parse", "main") == builder.tip
    commit_files(builder.worktree, {"two.txt": "2\n"})
    commit_files(repo, {"theirs.txt": "x\n"})
    told = merge_refused(builder, "--strategy", "ff")
    assert "fast-forward" in told
    assert f"hint: af merge --strategy merge {builder.id}\n" in told


def test_the_configured_strategy_and_a_message(committed: Committed, af: Af, repo: Path) -> None:
    assert af("config", "set", "merge.strategy", "squash").returncode == 0
    builder = committed({"one.txt": "1\n"}, {"two.txt": "2\n"})
    assert af("merge", builder.id, "-m", "All of it: é").returncode == 0
    assert log(repo) == ["All of it: é", "first"]


def test_a_second_merge_has_nothing_to_land(committed: Committed, af: Af) -> None:
    builder = committed({"one.txt": "1\n"})
    first = json.loads(af("merge", builder.id, "--json").stdout)["merged"][0]
    assert first["before"] != first["after"]
    second = json.loads(af("merge", builder.id, "--json").stdout)["merged"][0]
    assert second["before"] == second["after"] == first["after"]
    assert "nothing to land" in af("merge", builder.id).stdout


@pytest.mark.parametrize(
    ("strategy", "how"),
    [
        ("merge", "Merge main into your branch"),
        ("squash", "Merge main into your branch"),
        ("rebase", "Rebase your branch onto main"),
    ],
)
def test_a_conflict_is_refused_with_the_command_that_has_it_resolved(
    committed: Committed, repo: Path, strategy: str, how: str
) -> None:
    builder = committed({"README.md": "mine\n"})
    commit_files(repo, {"README.md": "theirs\n"})
    send = f"af send {builder.id} '{how} and resolve the conflicts in README.md'"
    assert f"hint: {send}\n" in merge_refused(builder, "--strategy", strategy)
    builder.stop()
    assert f"hint: af resume {builder.id} && {send}\n" in merge_refused(builder, "--strategy", strategy)


def test_after_a_merge_the_hint_stops_only_what_runs(committed: Committed, af: Af) -> None:
    builder = committed({"one.txt": "1\n"})
    assert f"hint: af prune --stop {builder.id}\n" in af("merge", builder.id).stderr
    commit_files(builder.stop().worktree, {"two.txt": "2\n"})
    assert af("merge", builder.id).stderr == f"hint: af prune {builder.id}\n"
    assert af("prune", builder.id).returncode == 0


def test_after_several_one_hint_removes_them_all(committed: Committed, af: Af) -> None:
    one, two = committed({"one.txt": "1\n"}), committed({"two.txt": "2\n"})
    done = af("merge", one.id, two.id)
    assert (done.returncode, done.stderr) == (0, "hint: af prune --landed\n")
    assert af("prune", "--landed").stdout.count(" removed") == 2


def test_a_dirty_file_that_the_merge_writes_is_refused(committed: Committed, repo: Path) -> None:
    builder = committed({"README.md": "mine\n"})
    write_files(repo, {"README.md": "being edited\n"})
    assert "README.md" in merge_refused(builder)


def test_an_untracked_or_ignored_file_in_the_way_is_refused(committed: Committed, repo: Path) -> None:
    builder = committed({"one.txt": "1\n", "two.txt": "2\n"})
    write_files(repo, {"one.txt": "a person's\n"})
    assert "one.txt" in merge_refused(builder)
    (repo / "one.txt").unlink()
    (repo / ".git/info").mkdir(exist_ok=True)
    with (repo / ".git/info/exclude").open("a") as exclude:
        exclude.write("two.txt\n")
    write_files(repo, {"two.txt": "ignored, and a person's\n"})
    assert "two.txt" in merge_refused(builder)


def test_other_uncommitted_work_in_the_main_checkout_stays(committed: Committed, af: Af, repo: Path) -> None:
    commit_files(repo, {"other.txt": "x\n"})
    builder = committed({"one.txt": "1\n"})
    write_files(repo, {"other.txt": "being edited\n", "staged.txt": "staged\n", "untracked.txt": "u\n"})
    git(repo, "add", "staged.txt")
    assert af("merge", builder.id).returncode == 0
    assert git(repo, "status", "--porcelain").split("\n") == [
        "M other.txt",
        "A  staged.txt",
        "?? untracked.txt",
    ]
    assert (repo / "one.txt").exists()


def test_a_main_checkout_that_is_elsewhere_is_refused(committed: Committed, af: Af, repo: Path) -> None:
    builder = committed({"one.txt": "1\n"})
    git(repo, "switch", "-q", "-c", "feature")
    told = merge_refused(builder)
    assert f"git -C {repo} switch main" in told
    assert "--here" in told
    assert af("merge", builder.id, "--here").returncode == 0
    assert git(repo, "log", "--format=%s", "-1", "main") == "first"


def test_a_detached_main_checkout_is_refused(committed: Committed, repo: Path) -> None:
    builder = committed({"one.txt": "1\n"})
    git(repo, "switch", "-q", "--detach")
    assert "no branch" in (refused := merge_refused(builder))
    assert f"hint: git -C {repo} switch BRANCH" in refused
    assert "no branch" in merge_refused(builder, "--here")


def test_a_merge_that_is_under_way_is_refused(committed: Committed, repo: Path) -> None:
    builder = committed({"one.txt": "1\n"})
    git(repo, "switch", "-q", "-c", "other")
    commit_files(repo, {"README.md": "other\n"})
    git(repo, "switch", "-q", "main")
    commit_files(repo, {"README.md": "main\n"})
    git(repo, "merge", "other", check=False)
    assert "in progress" in merge_refused(builder)


def test_the_check_runs_once_it_was_agreed_to(committed: Committed, af: Af, repo: Path) -> None:
    builder = committed({"one.txt": "1\n"})
    ran = repo.parent / "ran"
    write_files(repo, {"agent-farm.toml": f"[merge]\ncheck = \"pwd > '{ran}'; test -e allowed\"\n"})
    told = merge_refused(builder)
    assert "test -e allowed" in told
    assert f"hint: af merge --yes {builder.id}" in told
    assert not ran.exists()

    told = merge_refused(builder, "--yes")
    assert "exit code 1" in told
    assert not Path(ran.read_text().strip()).exists()

    commit_files(builder.worktree, {"allowed": ""})
    assert af("merge", builder.id).returncode == 0


def test_a_check_that_changed_is_asked_about_again(committed: Committed, af: Af, repo: Path) -> None:
    builder = committed({"one.txt": "1\n"})
    write_files(repo, {"agent-farm.toml": '[merge]\ncheck = "true"\n'})
    assert af("merge", builder.id, "--yes").returncode == 0
    commit_files(builder.worktree, {"two.txt": "2\n"})
    assert af("merge", builder.id).returncode == 0
    write_files(repo, {"agent-farm.toml": '[merge]\ncheck = "true # changed"\n'})
    commit_files(builder.worktree, {"three.txt": "3\n"})
    assert "changed" in merge_refused(builder)


def test_merge_and_prune_in_one_step(committed: Committed, af: Af, repo: Path) -> None:
    one, two = committed({"one.txt": "1\n"}), committed({"two.txt": "2\n"})
    done = af("merge", one.id, two.id, "--prune")
    assert done.returncode == 0, done.stderr
    assert "hint: af restore ID\n" in done.stderr
    assert traces(repo).records == frozenset()
    assert traces(repo).sessions == frozenset()
    assert sorted(log(repo, "--no-merges")) == ["first", "step 1", "step 1"]


def test_each_of_several_is_told_when_one_is_refused(committed: Committed, af: Af, repo: Path) -> None:
    one, two = committed({"same.txt": "1\n"}), committed({"same.txt": "2\n"})
    three = committed({"three.txt": "3\n"})
    done = af("merge", one.id, two.id, three.id, "--json")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert [row["id"] for row in document["merged"]] == [one.id]
    assert (document["failed"]["id"], document["not_tried"]) == (two.id, [three.id])
    assert document["failed"]["evidence"] == ["same.txt"]
    assert log(repo, "--no-merges", "--topo-order") == ["step 1", "first"]
    told = af("merge", one.id, two.id, three.id)
    assert told.stdout == f"{one.id} has nothing to land\n"
    assert f"Merged before that, and still merged: {one.id}\nNot tried: {three.id}\n" in told.stderr


def test_what_is_not_committed_stays_with_its_builder(committed: Committed, af: Af, repo: Path) -> None:
    builder = committed({"one.txt": "1\n"})
    write_files(builder.worktree, {"late.txt": "not yet committed\n"})
    done = af("merge", builder.id, "--prune")
    assert done.returncode == 0
    assert "late.txt" in done.stderr
    assert f"{builder.id} was kept" in done.stderr
    assert json.loads(af("merge", builder.id, "--json").stdout)["merged"][0]["left_behind"] == ["late.txt"]
    assert builder.id in traces(repo).records
    assert (builder.worktree / "late.txt").exists()


def test_conflicts_are_foreseen_between_builders_and_with_the_base(
    committed: Committed, af: Af, repo: Path
) -> None:
    one, two, three = (
        committed({"a.txt": "1\n"}),
        committed({"a.txt": "2\n"}),
        committed({"README.md": "3\n"}),
    )
    commit_files(repo, {"README.md": "base\n"})
    before = everything(repo)

    done = af("conflicts", "--json")

    assert done.returncode == 1
    found = {(row["one"], row["other"]): row["files"] for row in json.loads(done.stdout)["conflicts"]}
    assert found == {(one.id, two.id): ["a.txt"], (three.id, "main"): ["README.md"]}
    assert everything(repo) == before
    assert af("conflicts", one.id, three.id).stdout.split() == [three.id, "main", "README.md"]
    assert af("conflicts", one.id).returncode == 0
