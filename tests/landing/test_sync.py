"""Stacked builders: they begin on the work of another one, and are moved when that has landed."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_farm.cli.main import run
from tests.conftest import Af
from tests.farm.conftest import Spawned
from tests.farm.stopping import killed
from tests.gitrepo import commit_files, git

Spawn = Callable[..., Spawned]


@pytest.fixture
def pair(spawn: Spawn, repo: Path) -> tuple[Spawned, Spawned]:
    """One builder with a commit of its own, and one that stands on it with another commit."""
    below = spawn("[[write:a.txt]]", "--name", "below")
    above = spawn("[[write:b.txt]]", "--name", "above", "--stack", "below")
    return below, above


def record(af: Af, id: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(af("status", id, "--json").stdout)["builders"][0]
    return found


@pytest.mark.parametrize("strategy", ["merge", "squash", "rebase"])
def test_it_moves_to_where_the_work_below_it_has_landed(
    pair: tuple[Spawned, Spawned], repo: Path, af: Af, strategy: str
) -> None:
    below, above = pair
    assert (record(af, "above")["stack"], record(af, "above")["base"]) == ("below", below.branch)
    assert (above.worktree / "a.txt").exists()
    commit_files(repo, {"main.txt": "by a person\n"})
    assert af("merge", "below", "--strategy", strategy, "--prune").returncode == 0
    commit_files(repo, {"a.txt": "edited since\n"})  # copying the commit below once more would conflict
    done = af("sync", "above")
    assert done.returncode == 0, done.stderr
    assert f"above moved onto main at {git(repo, 'rev-parse', 'main')[:10]}" in done.stdout
    assert above.git("rev-parse", "HEAD~1") == git(repo, "rev-parse", "main")
    assert above.git("diff", "--name-only", "main", "HEAD") == "b.txt"
    assert above.git("status", "--porcelain") == ""
    now = record(af, "above")
    assert (now["stack"], now["base"]) == (None, "main")
    assert "stands on main" in af("sync", "above").stdout


def test_one_that_is_to_be_merged_while_it_is_stacked_is_led_to_sync(
    pair: tuple[Spawned, Spawned], repo: Path, af: Af
) -> None:
    assert af("merge", "below").returncode == 0
    commit_files(repo, {"agent-farm.toml": '[check]\ncommand = "true"\n'})
    for words in (("merge", "above"), ("land", "above")):
        done = af(*words, "--yes")
        assert done.returncode == 1
        assert done.stderr.startswith("error: above stands on the work of below\n")
        assert done.stderr.endswith("hint: af sync above\n")
    _, _, hint = done.stderr.partition("hint: af ")
    assert af(*hint.split()).returncode == 0
    assert af("merge", "above", "--yes").returncode == 0


def test_it_waits_for_the_work_below_it(pair: tuple[Spawned, Spawned], af: Af) -> None:
    _, above = pair
    tip = above.tip
    done = af("sync", "above")
    assert done.returncode == 1
    assert "below, on which above is stacked, has not landed on main" in done.stderr
    assert "hint: af merge below" in done.stderr
    assert above.tip == tip


def test_conflicts_leave_it_as_it_was_and_it_is_told(
    pair: tuple[Spawned, Spawned], repo: Path, af: Af
) -> None:
    _, above = pair
    tip = above.tip
    assert af("merge", "below").returncode == 0
    commit_files(repo, {"b.txt": "by a person\n"})
    done = af("sync", "above")
    assert done.returncode == 1
    assert "above conflicts with main; nothing was changed" in done.stderr
    assert "b.txt" in done.stderr
    assert above.tip == tip
    assert above.git("status", "--porcelain") == ""
    assert record(af, "above")["stack"] == "below"
    assert "Your commits conflict with main" in af("capture", "above", "--history", "200").stdout


def test_what_is_not_committed_is_not_moved(pair: tuple[Spawned, Spawned], af: Af) -> None:
    _, above = pair
    assert af("merge", "below").returncode == 0
    (above.worktree / "mine.txt").write_text("mine\n")
    done = af("sync", "above")
    assert done.returncode == 4
    assert "mine.txt" in done.stderr
    assert (above.worktree / "mine.txt").read_text() == "mine\n"


def test_what_only_a_merge_commit_holds_is_not_lost(spawn: Spawn, repo: Path, af: Af) -> None:
    builder = spawn("[[write:a.txt]]")
    commit_files(repo, {"main.txt": "by a person\n"})
    builder.git("merge", "-q", "--no-commit", "main")
    tip = commit_files(builder.worktree, {"only.txt": "in the merge\n"})
    commit_files(repo, {"more.txt": "by a person\n"})
    done = af("sync", builder.id)
    assert done.returncode == 1
    assert "holds changes of its own" in done.stderr
    assert (builder.tip, (builder.worktree / "only.txt").read_text()) == (tip, "in the merge\n")


def test_any_builder_moves_to_its_base_as_it_is_now(spawn: Spawn, repo: Path, af: Af) -> None:
    builder = spawn("[[write:a.txt]]")
    tip = commit_files(repo, {"main.txt": "by a person\n"})
    assert af("sync", builder.id).returncode == 0
    assert builder.git("rev-parse", "HEAD~1") == tip
    assert record(af, builder.id)["base_commit"] == tip


def test_ctrl_c_works_again_after_a_move(
    pair: tuple[Spawned, Spawned], repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_files(repo, {"main.txt": "by a person\n"})
    monkeypatch.chdir(repo)
    before = signal.getsignal(signal.SIGINT)
    assert run(["sync", "below"]) == 0
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.slow
def test_killed_at_any_step_of_the_move_it_ends_when_it_is_asked_again(
    spawn: Spawn, repo: Path, af: Af
) -> None:
    files = {f"file{number}": f"{number}\n" for number in range(20)}
    commit_files(repo, files)
    builder = spawn("[[write:a.txt]]")
    commit_files(repo, {name: f"{text}more\n" for name, text in files.items()})
    first = builder.tip
    seen = set[str]()
    for step in range(40):
        done = killed(repo, ("merge.json", "index.lock", "agent-farm-index")[step] if step < 3 else step + 12,
                      "sync", builder.id)  # fmt: skip
        if "stopped before" not in done.stderr:
            break
        admin = repo / ".git/worktrees" / builder.id
        if (admin / "agent-farm-merge.json").exists():
            seen.add(builder.git("status", "--porcelain")[:1])
            assert f"moving {builder.id} onto its base was interrupted" in af("doctor").stdout
        done = af("sync", builder.id)
        assert done.returncode == 0, (step, done.stderr)
        assert builder.git("status", "--porcelain") == ""
        assert builder.git("rev-parse", "HEAD~1") == git(repo, "rev-parse", "main")
        assert not (admin / "index.lock").exists()
        builder.git("reset", "-q", "--hard", first)
    assert len(seen) > 1  # also where files were written and the branch had not moved
