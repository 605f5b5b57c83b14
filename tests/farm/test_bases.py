"""Where a builder's work belongs: its base under another name, further on than it was, or gone."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.conftest import Spawned, status_of
from tests.gitrepo import commit_files, git

pytestmark = pytest.mark.slow

Spawn = Callable[..., Spawned]


@pytest.fixture
def origin(repo: Path) -> Path:
    """A remote that `main` follows; it has a branch `feature`, too."""
    bare = repo.parent / "origin.git"
    git(repo, "branch", "feature")
    git(repo, "clone", "-q", "--bare", str(repo), str(bare))
    git(repo, "branch", "-q", "-D", "feature")
    git(repo, "remote", "add", "origin", str(bare))
    git(repo, "fetch", "-q")
    git(repo, "branch", "-q", "-u", "origin/main")
    return bare


def with_work(spawn: Spawn, *options: str) -> Spawned:
    builder = spawn("--shell", *options)
    commit_files(builder.worktree, {"own.txt": "own\n"}, "own")
    return builder


def hint_of(text: str) -> list[str]:
    (line,) = (line for line in text.splitlines() if line.startswith("hint: "))
    return shlex.split(line.removeprefix("hint: "))


def test_what_began_from_the_remote_main_lands_on_main(
    spawn: Spawn, af: Af, repo: Path, origin: Path
) -> None:
    assert af("config", "set", "spawn.base", "origin/main").returncode == 0
    builder = with_work(spawn)
    done = af("merge", builder.id)
    assert done.returncode == 0, done.stderr
    assert (repo / "own.txt").exists()
    assert builder.stop().af("prune", builder.id).returncode == 0


def test_what_began_from_another_remote_branch_lands_here_only_when_told(
    spawn: Spawn, af: Af, repo: Path, origin: Path
) -> None:
    builder = with_work(spawn, "--base", "origin/feature")
    refused = af("merge", builder.id)
    assert refused.returncode == 1
    assert f"{builder.id} began from origin/feature, and the main checkout is on main" in refused.stderr
    assert hint_of(refused.stderr) == ["af", "merge", "--here", builder.id]

    git(repo, "branch", "-q", "--track", "feature", "origin/feature")
    switch = hint_of(af("merge", builder.id).stderr)
    assert switch == ["git", "-C", str(repo), "switch", "feature"]
    git(repo, *switch[1:])
    assert af("merge", builder.id).returncode == 0


@pytest.mark.parametrize("base", ["v1", "HEAD~0"])
def test_what_began_from_a_tag_or_a_commit_lands_on_any_branch(
    spawn: Spawn, af: Af, repo: Path, base: str
) -> None:
    git(repo, "tag", "v1")
    builder = with_work(spawn, "--base", base)
    git(repo, "switch", "-q", "-c", "other")
    done = af("merge", builder.id)
    assert done.returncode == 0, done.stderr
    assert "landed on other" in done.stdout


def test_nobody_is_sent_to_a_base_that_cannot_be_checked_out(spawn: Spawn, af: Af, repo: Path) -> None:
    git(repo, "branch", "old")
    builder = with_work(spawn, "--base", "old")
    upon = spawn("--shell", "--base", builder.branch)
    refused = af("merge", upon.id)
    assert hint_of(refused.stderr) == ["af", "merge", "--here", upon.id]

    git(repo, "branch", "-q", "-D", "old")
    refused = af("merge", builder.id)
    assert "began from old, which is gone" in refused.stderr
    hint = hint_of(refused.stderr)
    assert hint == ["af", "merge", "--here", builder.id]
    assert af(*hint[1:]).returncode == 0


def changed(af: Af, id: str, *options: str) -> list[str]:
    lines = af("diff", id, "--stat", *options).stdout.splitlines()
    return [line.split("|")[0].strip() for line in lines if "|" in line]


def test_a_diff_leaves_out_what_the_builder_took_in_from_its_base(spawn: Spawn, af: Af, repo: Path) -> None:
    builder = with_work(spawn)
    commit_files(repo, {"theirs.txt": "x\n"}, "theirs")
    assert changed(af, builder.id) == ["own.txt"]
    builder.git("merge", "-q", "-m", "take main in", "main")
    (builder.worktree / "late.txt").write_text("late\n")
    commit_files(repo, {"later.txt": "x\n"}, "later")
    assert changed(af, builder.id) == ["late.txt", "own.txt"]
    assert changed(af, builder.id, "--committed") == ["own.txt"]

    assert af("merge", builder.id).returncode == 0
    assert {"own.txt", "late.txt"} <= set(changed(af, builder.id))

    git(repo, "switch", "-q", "-c", "elsewhere")
    git(repo, "branch", "-q", "-D", "main")
    assert {"own.txt", "late.txt"} <= set(changed(af, builder.id))


def test_a_diff_leaves_out_what_came_by_another_name_of_the_base(
    spawn: Spawn, af: Af, repo: Path, origin: Path
) -> None:
    builder = with_work(spawn, "--base", "origin/main")
    commit_files(repo, {"local.txt": "x\n"}, "not pushed")
    builder.git("rebase", "-q", "main")
    assert changed(af, builder.id) == ["own.txt"]


def test_a_base_that_is_gone_is_said_and_never_taken_for_no_difference(
    spawn: Spawn, af: Af, repo: Path
) -> None:
    git(repo, "branch", "old")
    builder, other = with_work(spawn, "--base", "old"), spawn("--shell")
    git(repo, "branch", "-q", "-D", "old")

    assert "? base gone" in af("status", builder.id).stdout
    state = status_of(af, builder.id)["git"]
    assert (state["ahead"], state["behind"], state["missing"]) == (None, None, "base")
    assert status_of(af, other.id)["git"]["missing"] is None

    done = af("conflicts")
    assert done.returncode == 1
    assert "No conflicts among those that could be compared." in done.stderr
    assert done.stdout.split() == [builder.id, "old", *["?", "not", "compared:", "there", "is", "no", "old"]]
    found = json.loads(af("conflicts", builder.id, "--json").stdout)
    assert found["conflicts"] == []
    assert found["unknown"] == [{"one": builder.id, "other": "old", "reason": "there is no old"}]
    alone = af("conflicts", other.id)
    assert alone.returncode == 0
    assert "No conflicts among 1 builder and its base." in alone.stderr


def test_a_record_follows_from_a_branch_that_is_gone(spawn: Spawn, af: Af) -> None:
    builder = spawn("--shell")
    builder.git("switch", "-q", "-c", "renamed")
    builder.git("branch", "-q", "-D", builder.branch)
    assert f"{builder.branch} is renamed now; its record follows" in af("status", builder.id).stderr
    assert "No conflicts among 1 builder and its base." in af("conflicts").stderr


def push_more(repo: Path, origin: Path, commits: int) -> str:
    """Commits that only the remote has; the newest."""
    other = repo.parent / "colleague"
    git(repo, "clone", "-q", str(origin), str(other))
    for number in range(commits):
        commit_files(other, {f"theirs-{number}.txt": "theirs\n"}, "theirs")
    git(other, "push", "-q", "origin", "HEAD:main")
    return git(other, "rev-parse", "HEAD")


def test_a_base_that_is_behind_is_named_at_spawn_and_in_status(af: Af, repo: Path, origin: Path) -> None:
    push_more(repo, origin, 3)
    assert "behind origin" not in af("spawn", "--shell", "--runtime", "demo").stderr
    git(repo, "fetch", "-q")
    done = af("spawn", "--shell", "--runtime", "demo", "--dry-run")
    assert f"from main at {git(repo, 'rev-parse', 'HEAD')[:10]}, 3 behind origin/main" in done.stderr
    assert git(repo, "rev-parse", "HEAD") in done.stdout
    assert "main is 3 behind origin/main" in af("status", "--fresh").stdout


@pytest.mark.parametrize("how", ["flag", "setting"])
def test_fetch_starts_from_what_the_remote_has(af: Af, repo: Path, origin: Path, how: str) -> None:
    newest = push_more(repo, origin, 2)
    before = git(repo, "rev-parse", "main")
    if how == "setting":
        assert af("config", "set", "spawn.fetch", "true").returncode == 0
    words = ("--fetch",) if how == "flag" else ()
    done = af("spawn", "--shell", "--runtime", "demo", "--json", *words)
    builder = json.loads(done.stdout)["builder"]
    assert (builder["base"], builder["base_commit"]) == ("main", newest)
    assert "behind origin" not in done.stderr
    assert git(repo, "rev-parse", "main") == before


def test_fetch_leaves_a_base_with_commits_of_its_own_and_says_so(af: Af, repo: Path, origin: Path) -> None:
    push_more(repo, origin, 2)
    commit_files(repo, {"mine.txt": "mine\n"}, "mine")
    done = af("spawn", "--shell", "--runtime", "demo", "--json", "--fetch")
    assert json.loads(done.stdout)["builder"]["base_commit"] == git(repo, "rev-parse", "main")
    assert "2 behind and 1 ahead of origin/main" in done.stderr


def test_a_remote_that_cannot_be_fetched_starts_nothing(af: Af, repo: Path, origin: Path) -> None:
    origin.rename(origin.with_name("away"))
    done = af("spawn", "--shell", "--runtime", "demo", "--fetch")
    assert done.returncode == 1
    assert "origin cannot be fetched" in done.stderr
    assert "without --fetch" in done.stderr
    git(repo, "branch", "--unset-upstream")
    assert af("spawn", "--shell", "--runtime", "demo", "--fetch").returncode == 2
    assert json.loads(af("status", "--json").stdout)["builders"] == []
