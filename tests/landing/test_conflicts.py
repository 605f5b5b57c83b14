"""`af conflicts`: what it foresees is what merging does, and its order meets the fewest conflicts."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections.abc import Callable
from itertools import combinations, permutations
from pathlib import Path

import pytest

from agent_farm.farm.farm import open_farm
from agent_farm.landing.order import landing_order
from agent_farm.operations.conflicts import Conflicts, ForeseenConflicts, conflicts
from agent_farm.operations.operation import Context
from tests.builders.test_registry import a_record
from tests.conftest import Af
from tests.farm.conftest import Spawned
from tests.gitrepo import commit_files, git, write_files

Spawn = Callable[..., Spawned]


def builders(repo: Path, changes: list[dict[str, str]]) -> list[str]:
    """Worktrees and records of builders that have committed these files."""
    farm = open_farm(repo)
    made = []
    for number, files in enumerate(changes):
        id = f"task-{number:04x}-made"
        tree = repo / ".builders" / id
        git(repo, "worktree", "add", "-q", "-b", f"builder/{id}", str(tree))
        if files:
            commit_files(tree, files, f"work {number}")
        record = a_record(id, worktree=str(tree), base_commit=git(repo, "rev-parse", "main"))
        farm.registry.put(record)
        made.append(id)
    return made


def foreseen(repo: Path, **asked: object) -> ForeseenConflicts:
    return conflicts.answer_to(Context(open_farm(repo)), Conflicts(**asked))  # type: ignore[arg-type]


def test_the_lines_that_conflict_are_shown_on_request(repo: Path, af: Af) -> None:
    commit_files(repo, {"a.txt": "1\n2\n3\n"})
    one, other = builders(repo, [{"a.txt": "1\nmine\n3\n"}, {"a.txt": "1\ntheirs\n3\n"}])
    (conflict,) = foreseen(repo, hunks=True).conflicts
    (hunk,) = conflict.hunks
    assert (hunk.file, hunk.line) == ("a.txt", 2)
    assert hunk.text.split("\n")[1::2] == ["mine", "theirs"]
    assert foreseen(repo).conflicts[0].hunks == ()
    shown = af("conflicts", "--hunks").stdout
    assert shown.startswith(f"{one}  {other}  a.txt\n  a.txt:2\n  <<<<<<< {one}\n  mine\n")


def test_what_is_not_committed_counts_on_request(repo: Path) -> None:
    commit_files(repo, {"a.txt": "1\n"})
    one, other = builders(repo, [{"a.txt": "mine\n"}, {}])
    tree = repo / ".builders" / other
    write_files(tree, {"a.txt": "theirs\n", "new.txt": "n\n"})
    before = git(tree, "status", "--porcelain")
    assert foreseen(repo).conflicts == ()
    found = foreseen(repo, uncommitted=True)
    assert [(pair.one, pair.other, pair.files) for pair in found.conflicts] == [(one, other, ("a.txt",))]
    commit_files(repo, {"new.txt": "other\n"})
    assert (other, "main") in [(pair.one, pair.other) for pair in foreseen(repo, uncommitted=True).conflicts]
    assert git(tree, "status", "--porcelain") == before


def test_the_order_says_who_has_to_rework(repo: Path, af: Af) -> None:
    commit_files(repo, {"a.txt": "1\n", "b.txt": "1\n"})
    both, one, other = builders(repo, [{"a.txt": "x\n", "b.txt": "x\n"}, {"a.txt": "y\n"}, {"b.txt": "y\n"}])
    found = foreseen(repo)
    assert (found.order, found.rework) == ((one, other, both), (both,))
    told = af("conflicts").stderr
    assert f"Fewest conflicts in this order: {one} {other} {both}\nhint: af merge {one} {other}\n" in told


@pytest.mark.parametrize("seed", range(30))
def test_no_other_order_meets_fewer_conflicts(seed: int) -> None:
    pick = random.Random(seed)
    ids = [f"b{number}" for number in range(pick.randint(1, 6))]
    pairs = [pair for pair in combinations(ids, 2) if pick.random() < 0.4]
    blocked = [id for id in ids if pick.random() < 0.2]

    def conflicts(order: tuple[str, ...]) -> int:
        landed: list[str] = []
        for id in order:
            if id not in blocked and not any({id, one} in [{*pair} for pair in pairs] for one in landed):
                landed.append(id)
        return len(ids) - len(landed)

    found = landing_order(ids, pairs, blocked)
    assert sorted(found.ids) == sorted(ids)
    assert len(found.rework) == conflicts(found.ids) == min(map(conflicts, permutations(ids)))


def test_an_order_of_many_is_found_in_time() -> None:
    pick = random.Random(1)
    ids = [f"b{number:03}" for number in range(200)]
    pairs = [pair for pair in combinations(ids, 2) if pick.random() < 0.1]
    began = time.monotonic()
    assert sorted(landing_order(ids, pairs).ids) == ids
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("driver", [pytest.param("union", marks=pytest.mark.slow), "own"])
def test_a_declared_merge_driver_is_followed_by_the_check(
    repo: Path, spawn: Spawn, af: Af, driver: str
) -> None:
    """git's own union, or one of the user's configuration; the check judges what it made, and that lands."""
    attributes = f"log.txt merge={driver}\n"
    commit_files(
        repo, {".gitattributes": attributes, "log.txt": "0\n", "check.sh": "grep -q 3 log.txt; test $? = 1\n"}
    )
    git(repo, "config", "--global", "merge.own.driver", "cat %B >> %A")
    one, two, three = (spawn("--shell") for _ in range(3))
    for number, builder in enumerate((one, two, three), 1):
        commit_files(builder.worktree, {"log.txt": f"0\n{number}\n"}, f"add {number}")
    assert af("conflicts").returncode == 0
    assert af("config", "set", "check.command", "sh check.sh").returncode == 0
    assert af("merge", one.id, two.id).returncode == 0
    assert {"1", "2"} <= set((repo / "log.txt").read_text().split())
    before = git(repo, "rev-parse", "HEAD")
    assert '"red"' in af("check", "--json", three.id).stdout
    assert af("merge", three.id).returncode == 1
    assert git(repo, "rev-parse", "HEAD") == before


def _changes(pick: random.Random, files: list[str], lines: int) -> dict[str, str]:
    """Some lines of some files are other ones, or gone, or there are more; a file is gone or new."""
    changed = {}
    for name in pick.sample(files, pick.randint(1, 4)):
        text = [f"{name} {number}" for number in range(lines)]
        for _ in range(pick.randint(1, 3)):
            at = pick.randrange(len(text))
            kind = pick.random()
            other, more = [f"other {pick.random()}"], [text[at], f"new {pick.random()}"]
            text[at : at + 1] = other if kind < 0.6 else [] if kind < 0.8 else more
        changed[name] = "\n".join(text) + "\n"
    if pick.random() < 0.3:
        changed[f"new{pick.randrange(3)}.txt"] = f"{pick.random()}\n"
    return changed


def _processor_seconds() -> float:
    """Of this process and of what it has waited for: whoever else is at work adds nothing."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_thirty_builders_conflict_as_their_merges_do(repo: Path, tmp_path: Path, seed: int) -> None:
    pick = random.Random(seed)
    files = [f"file{number}.txt" for number in range(12)]
    commit_files(repo, {name: "".join(f"{name} {line}\n" for line in range(30)) for name in files})
    ids = builders(repo, [_changes(pick, files, 30) for _ in range(30)])
    commit_files(repo, _changes(pick, files, 30), "main moves")

    own = []
    for _ in range(3):
        began = _processor_seconds()
        found = foreseen(repo)
        own.append(_processor_seconds() - began)
    told = {(one.one, one.other): set(one.files) for one in found.conflicts}

    place = tmp_path / "place"
    git(repo, "worktree", "add", "-q", "--detach", str(place))
    sides = [*combinations(ids, 2), *((id, "main") for id in ids)]
    for one, other in sides:
        git(place, "checkout", "-q", "--detach", f"builder/{one}")
        ref = other if other == "main" else f"builder/{other}"
        merged = subprocess.run(["git", "merge", "-q", "--no-edit", ref], cwd=place, capture_output=True)
        unmerged = git(place, "diff", "--name-only", "--diff-filter=U").split()
        assert set(unmerged) == told.get((one, other), set()), (one, other)
        assert bool(merged.returncode) == bool(unmerged)
        git(place, "reset", "-q", "--hard")
    assert 0 < len(told) < len(sides)

    tips = {id: git(repo, "rev-parse", f"builder/{id}") for id in ids} | {
        "main": git(repo, "rev-parse", "main")
    }
    question = "".join(f"{tips[one]} {tips[other]}\n" for one, other in sides)
    gits = []
    for _ in range(3):
        began = _processor_seconds()
        git(repo, "merge-tree", "--write-tree", "--stdin", "-z", "--name-only", input=question)
        gits.append(_processor_seconds() - began)
    print(json.dumps({"af": min(own), "git": min(gits), "conflicts": len(told)}))
    assert min(own) - min(gits) < 0.5
