"""`af land` is killed at its steps, and raced by a person: the branch only ever moves to what has passed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.stopping import killed
from tests.gitrepo import commit_files, git
from tests.landing.test_queue import Committed, committed, ids, land, ran, set_check
from tests.waiting import wait_until

__all__ = ["committed", "ran"]

pytestmark = pytest.mark.slow


def trees(repo: Path) -> list[str]:
    """Of every commit that the branch was at: it moves to the merges of the queue."""
    return git(repo, "log", "--format=%T", "--walk-reflogs", "main").splitlines()


@pytest.mark.parametrize("part", range(4))
def test_killed_at_any_step_it_goes_on(
    committed: Committed, af: Af, repo: Path, ran: Path, part: int
) -> None:
    """At the first step that names one of these, and at every tenth of all."""
    good, bad = committed(one="1\n"), committed(bad="x\n")
    start = git(repo, "rev-parse", "HEAD")
    steps: list[str | int] = [
        "landing.json",
        "merge-tree",
        "commit-tree",
        "agent-farm-merge.json",
        "read-tree",
        *range(20 + part * 10, 400, 40),
    ]
    chosen = steps[part:5:4] + steps[5:]
    for step in chosen:
        git(repo, "reset", "-q", "--hard", start)
        for name in ("landing.json", "landing-record.json"):
            (repo / ".agent-farm" / name).unlink(missing_ok=True)
        done = killed(repo, step, "land", good.id, bad.id, "--yes")
        status = json.loads(af("land", "--status", "--json").stdout)
        assert status["state"] in ("none", "stopped", "done")
        if status["state"] == "stopped":
            assert "a landing on main was cut short" in af("doctor").stdout
            found = land(af, "--continue")
        else:
            found = land(af, good.id, bad.id) if status["state"] == "none" else status
        assert ids(found["landed"]) == [good.id], (step, done.stderr)
        assert ids(found["returned"]) == [bad.id]
        assert git(repo, "status", "--porcelain") == ""
        assert git(repo, "rev-parse", "HEAD^{tree}") in ran.read_text().split()
        assert git(repo, "log", "--format=%s", "--first-parent").count("\n") == 1
        if done.returncode == 1 and isinstance(step, int):
            break  # it has fewer steps


def test_a_person_commits_while_the_check_runs(committed: Committed, af: Af, repo: Path, ran: Path) -> None:
    one, two = committed(one="1\n"), committed(two="2\n")
    once = repo.parent / "once"
    commit = f"git -C '{repo}' commit -q --allow-empty -m person"
    set_check(repo, ran, f"test -e '{once}' || {{ touch '{once}'; {commit}; }}; ! ls bad*")
    found = land(af, one.id, two.id)
    assert ids(found["landed"]) == [one.id, two.id]
    assert git(repo, "log", "--format=%s", "--first-parent").splitlines()[2:] == ["person", "first"]
    assert git(repo, "rev-parse", "HEAD^{tree}") in ran.read_text().split()


def test_one_that_comes_later_joins(committed: Committed, af: Af, repo: Path, ran: Path) -> None:
    one, two = committed(one="1\n"), committed(two="2\n")
    once = repo.parent / "once"
    add = f"cd '{repo}' && '{sys.executable}' -m agent_farm land {two.id} --yes --json > '{once}.json'"
    set_check(repo, ran, f"test -e '{once}' || {{ touch '{once}'; ({add}); }}; ! ls bad*")
    path = '\n[env]\npass = ["PYTHONPATH", "TMUX_TMPDIR", "XDG_STATE_HOME"]\n'
    with (repo / "agent-farm.toml").open("a") as settings:
        settings.write(path)
    package = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-m", "agent_farm", "land", one.id, "--yes", "--json"],
        cwd=repo,
        env={**os.environ, "PYTHONPATH": package},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(once.with_suffix(".json").read_text())["state"] == "running"
    assert ids(json.loads(done.stdout)["landed"]) == [one.id, two.id]


def test_what_a_person_commits_over_is_merged_with_it(
    committed: Committed, af: Af, repo: Path, ran: Path
) -> None:
    """The commit conflicts with one of two that were checked together."""
    one, two = committed(one="1\n"), committed(two="2\n")
    once = repo.parent / "once"
    person = repo.parent / "person.sh"
    person.write_text(f"cd '{repo}' && echo theirs > one.txt && git add one.txt && git commit -q -m person\n")
    set_check(repo, ran, f"test -e '{once}' || {{ touch '{once}'; sh '{person}'; }}; ! ls bad*")
    found = land(af, one.id, two.id)
    assert ids(found["landed"]) == [two.id]
    assert [(row["id"], row["kind"]) for row in found["returned"]] == [(one.id, "conflict")]
    assert (repo / "one.txt").read_text() == "theirs\n"
    commit_files(repo, {"more.txt": "x\n"})
    assert git(repo, "status", "--porcelain") == ""


def test_who_was_aborted_lands_nothing_of_the_next_queue(
    committed: Committed, af: Af, repo: Path, ran: Path
) -> None:
    """It may be in the middle of a check, while the next one waits for it to end, for another branch."""
    one, two = committed(one="1\n"), committed(two="2\n")
    go, linked, main = repo.parent / "go", repo.parent / "linked", git(repo, "rev-parse", "main")
    git(repo, "worktree", "add", "-q", "-b", "other", str(linked))
    set_check(repo, ran, f"until test -e '{go}'; do sleep 0.05; done")
    (linked / "agent-farm.toml").write_text((repo / "agent-farm.toml").read_text())
    aborted = _landing(repo, one.id)
    wait_until(lambda: ran.read_text() != "", timeout=120, what="the check")
    assert af("land", "--abort").returncode == 0
    following = _landing(linked, two.id, "--here")
    wait_until((repo / ".agent-farm/landing.json").exists, timeout=120, what="the next queue")
    go.touch()
    told, _ = aborted.communicate(timeout=120)
    assert (aborted.returncode, "The landing was aborted in the meantime" in told) == (1, True), told
    done, told = following.communicate(timeout=120)
    assert ids(json.loads(done)["landed"]) == [two.id], told
    assert git(repo, "rev-parse", "main") == main
    assert (linked / "two.txt").exists()


def _landing(place: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "agent_farm", "land", *words, "--yes", "--json"]
    return subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
