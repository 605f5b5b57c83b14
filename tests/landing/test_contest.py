"""`af compare` and `af keep`: everybody's new tests on everybody's code, one that stays, and what is left."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_farm.farm.farm import open_farm
from agent_farm.landing.contest.comparisons import newest_with
from agent_farm.landing.train.risk import Tally, load_record
from tests.conftest import Af
from tests.farm.conftest import Spawned
from tests.gitrepo import commit_files, git, write_files

Spawn = Callable[..., Spawned]
CHECK = 'for test in tests/test_*; do sh "$test" || { echo "$test: red"; exit 1; }; done'
RIGHT, WRONG = "echo $(($1 + $2))\n", "echo $(($1 * 2))\n"


def asks(one: int, other: int, sum: int) -> str:
    return f"test $(sh add.sh {one} {other}) = {sum}\n"


@pytest.fixture
def three(spawn: Spawn, repo: Path, af: Af) -> list[Spawned]:
    """A task with a test; two did it right, the second of them without a test of its own."""
    commit_files(repo, {"add.sh": "echo 0\n", "tests/test_first": asks(0, 0, 0)})
    assert af("config", "set", "check.command", CHECK).returncode == 0
    write_files(repo, {".git/info/exclude": "/agent-farm.toml\n/.agent-farm/\n/.builders/\n"})
    builders = [spawn("--shell") for _ in range(3)]
    works = (
        {"add.sh": f"# it adds\n{RIGHT}", "tests/test_sum": asks(3, 4, 7), "tests/test_first": asks(0, 1, 1)},
        {"add.sh": RIGHT},
        {"add.sh": WRONG, "tests/test_sum": asks(2, 2, 4)},
    )
    for builder, files in zip(builders, works, strict=True):
        commit_files(repo, {"other": builder.id})  # the target moves on meanwhile
        commit_files(builder.worktree, files, "work")
    return builders


def compare(builders: list[Spawned], *options: str, code: int = 0) -> dict[str, Any]:
    ids = [builder.id for builder in builders]
    done = builders[0].af("compare", "--yes", "--json", *options, *ids)
    assert done.returncode == code, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def left(af: Af) -> list[str]:
    return [one["id"] for one in json.loads(af("status", "--json").stdout)["builders"]]


@pytest.mark.slow
def test_everybodys_new_tests_run_on_everybodys_code(three: list[Spawned], af: Af) -> None:
    tested, untested, wrong = three
    found = compare([wrong, untested, tested])
    rows = {(row["tests_of"], row["on"]): row["passed"] for row in found["tests"]}
    assert rows == {
        (tested.id, untested.id): True,
        (tested.id, wrong.id): False,
        (wrong.id, tested.id): True,
        (wrong.id, untested.id): True,
    }
    best, second, last = found["builders"]
    assert [best["id"], second["id"], last["id"]] == [untested.id, tested.id, wrong.id]
    assert found["decided"]
    assert best["chance"] > second["chance"] > 0.7 > 0.2 > last["chance"]
    assert best["reasons"] == [
        f"passes the new tests of {tested.id}, {wrong.id}", "has no new tests to run on the others' code"
    ]  # fmt: skip
    assert second["reasons"][1] == f"its own new tests fail on the code of {wrong.id}"
    assert last["reasons"][0] == f"fails the new tests of {tested.id} (1 of 1)"
    assert (second["files"], second["added"], second["deleted"]) == (3, 4, 2)
    assert second["tests"] == ["tests/test_first", "tests/test_sum"]
    (red,) = (row for row in found["tests"] if not row["passed"])
    assert red["told"] == "the check check failed with exit code 1"
    assert "tests/test_first: red" in Path(red["log"]).read_text()
    logs = {row["log"]: os.stat(row["log"]).st_mtime_ns for row in found["tests"]}
    assert {row["log"] for row in compare(three)["tests"]} == set(logs)
    assert {log: os.stat(log).st_mtime_ns for log in logs} == logs  # nothing ran a second time
    write_files(untested.worktree, {"tests/test_more": "true\n" * 20})
    untested.git("add", ".")
    untested.git("commit", "-q", "-m", "more tests")
    alike = compare([tested, untested])["builders"]  # more lines, but of tests
    assert [one["id"] for one in alike] == [untested.id, tested.id]
    told = af("compare", tested.id, untested.id, wrong.id)
    assert told.stdout.startswith(f"1  {untested.id}  right: ")
    assert f"hint: af keep --land {untested.id}\n" in told.stderr


@pytest.mark.slow
def test_a_test_that_somebody_deleted_is_there_again(three: list[Spawned]) -> None:
    asking, cheat, _ = three
    git(asking.worktree, "checkout", "-q", "main", "--", "tests/test_first")
    asking.git("commit", "-q", "-m", "the first test stays")
    git(cheat.worktree, "rm", "-q", "tests/test_first")
    commit_files(cheat.worktree, {"add.sh": "echo 7\n", "tests/test_own": asks(3, 4, 7)})
    rows = {(row["tests_of"], row["on"]): row["passed"] for row in compare([asking, cheat])["tests"]}
    assert rows == {(asking.id, cheat.id): False, (cheat.id, asking.id): True}


@pytest.mark.slow
def test_what_is_not_proven_comes_last_and_says_why(three: list[Spawned], af: Af) -> None:
    tested, untested, wrong = three
    write_files(tested.worktree, {"left": "x\n"})
    commit_files(untested.worktree, {"add.sh": "exit 1\n"})
    found = compare([tested, untested, wrong])
    assert found["builders"][0]["id"] == wrong.id
    assert found["tests"] == []
    against = {one["id"]: one["reasons"] for one in found["builders"][1:]}
    assert against == {
        tested.id: ["not proven: not committed: left"],
        untested.id: ["not proven: the check failed with exit code 1"],
    }
    assert compare([tested, untested], code=1)["builders"][0]["chance"] is None


def test_keep_lands_one_and_the_others_can_come_back(three: list[Spawned], af: Af, repo: Path) -> None:
    tested, untested, wrong = three
    compare(three)
    shown = json.loads(af("keep", tested.id, "--dry-run", "--json").stdout)
    assert (shown["would_remove"], left(af)) == ([untested.id, wrong.id], [one.id for one in three])
    write_files(wrong.worktree, {"draft": "mine\n"})
    done = af("keep", "--land", "--yes", "--json", tested.id)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["id"] for one in found["landing"]["landed"]] == [tested.id]
    assert [one["id"] for one in found["removed"]] == [untested.id, wrong.id]
    assert left(af) == [tested.id]
    assert RIGHT in (repo / "add.sh").read_text()
    assert af("restore", wrong.id).returncode == 0
    assert (wrong.worktree / "draft").read_text() == "mine\n"
    assert (wrong.worktree / "add.sh").read_text() == WRONG
    record = load_record(repo / ".agent-farm/landing-record.json")
    assert record.runtimes["demo"] == Tally(landed=1, won=1, lost=2)
    assert (record.builders[tested.id].won, record.builders[wrong.id].lost) == (1, 1)
    again = af("keep", "--land", "--yes", tested.id)
    assert (again.returncode, left(af)) == (0, [tested.id]), again.stderr
    assert load_record(repo / ".agent-farm/landing-record.json").runtimes["demo"].lost == 2


@pytest.mark.slow
def test_nobody_goes_when_it_does_not_land(three: list[Spawned], af: Af, repo: Path) -> None:
    compare(three)
    commit_files(repo, {"tests/test_new": "false\n"})
    done = af("keep", "--land", "--yes", three[0].id)
    assert done.returncode == 1
    assert "The check fails on main itself" in done.stderr
    assert len(left(af)) == 3
    commit_files(repo, {"tests/test_new": "true\n", "add.sh": "echo 1\n"})
    done = af("keep", "--land", "--yes", three[0].id)  # the queue that stopped is carried on
    assert done.returncode == 1
    assert f"{three[0].id} did not land, so the others stay.\n" in done.stderr
    assert len(left(af)) == 3


@pytest.mark.slow
def test_one_that_has_moved_on_or_is_refused_stays_and_is_named(three: list[Spawned], af: Af) -> None:
    tested, untested, wrong = three
    compare(three)
    commit_files(untested.worktree, {"more": "x\n"})
    git(wrong.repo, "worktree", "lock", str(wrong.worktree))
    done = af("keep", tested.id)
    assert done.returncode == 4
    assert "It has committed since it was compared." in done.stderr
    assert f"hint: af compare {tested.id} {untested.id} {wrong.id}\n" in done.stderr
    assert "its worktree is locked" in done.stderr
    git(wrong.repo, "worktree", "unlock", str(wrong.worktree))
    assert af("keep", tested.id).returncode == 1
    assert left(af) == [tested.id, untested.id]


@pytest.mark.slow
def test_what_cannot_be_compared_or_kept(three: list[Spawned], af: Af, repo: Path) -> None:
    one, other, _ = three
    assert "was not compared with another builder" in af("keep", one.id).stderr
    assert af("compare", "--yes", one.id, one.id).returncode == 2
    git(repo, "switch", "-q", "-c", "elsewhere")
    moved = json.loads(af("spawn", "--runtime", "demo", "--shell", "--json").stdout)["builder"]["id"]
    done = af("compare", "--yes", one.id, moved)
    assert (done.returncode, "Their targets are elsewhere and main" in done.stderr) == (2, True)
    compare([one, other])
    file = open_farm(repo).paths.comparisons
    assert set(newest_with(file, one.id).tips) == {one.id, other.id}
    file.write_text("{")
    assert f"hint: mv {file}" in af("keep", one.id).stderr
