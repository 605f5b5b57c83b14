"""Worktrees kept ready: taken, refilled, and never in the way, whatever happened to them."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from agent_farm.farm import checkout_cost
from agent_farm.farm.farm import open_farm
from agent_farm.farm.ready_worktrees import planned
from tests.conftest import Af
from tests.farm.conftest import status_of
from tests.farm.stopping import killed
from tests.farm.traces import traces
from tests.gitrepo import commit_files, git, make_repo, write_files
from tests.waiting import wait_until

TREE = {"a.txt": "a\n", "deep/b.txt": "b\n"}


@pytest.fixture
def pooled(repo: Path, af: Af) -> Iterator[Path]:
    commit_files(repo, TREE)
    assert af("config", "set", "pool.size", "2").returncode == 0
    commit_files(repo, {"agent-farm.toml": (repo / "agent-farm.toml").read_text()})
    assert af("pool", "fill").stdout == "2 ready\n"
    yield repo
    af("pool", "drain")  # waits for a refill that goes on in the background


def ready(repo: Path) -> dict[str, str]:
    """Slot to commit; a slot counts when its directory is there as well."""
    found = {}
    for path in (repo / ".builders/.pool").glob("*.ready"):
        with suppress(FileNotFoundError):
            if path.with_suffix("").is_dir():
                found[path.stem] = json.loads(path.read_text())["commit"]
    return found


def spawn(af: Af, repo: Path, *words: str) -> tuple[str, Path]:
    done = af("spawn", *(words or ("--shell",)), "--runtime", "demo", "--json", cwd=repo)
    assert done.returncode == 0, done.stdout
    builder = json.loads(done.stdout)["builder"]
    assert af("wait", builder["id"], "--timeout", "300", cwd=repo).returncode == 0
    return builder["id"], Path(builder["worktree"])


def assert_sound(repo: Path, worktree: Path) -> None:
    """A builder like any other: on its branch, clean, with every file, and registered once."""
    assert git(worktree, "status", "--porcelain") == ""
    assert git(worktree, "branch", "--show-current") == f"builder/{worktree.name}"
    assert git(worktree, "rev-parse", "HEAD") == git(repo, "rev-parse", "main")
    assert (worktree / "deep/b.txt").read_text() == "b\n"
    listed = git(repo, "worktree", "list", "--porcelain").splitlines()
    assert listed.count(f"worktree {worktree}") == 1


def test_a_spawn_takes_a_slot_and_has_it_made_again(pooled: Path, af: Af) -> None:
    inodes = {path.stat().st_ino for path in (pooled / ".builders/.pool").iterdir() if path.is_dir()}
    id, worktree = spawn(af, pooled)
    assert worktree.stat().st_ino in inodes
    assert_sound(pooled, worktree)
    wait_until(lambda: len(ready(pooled)) == 2, what="the pool to be whole again")
    assert status_of(af, id)["status"]["state"] in ("preparing", "working", "idle")
    assert traces(pooled).records == {id}


def test_slots_follow_the_main_checkout(pooled: Path, af: Af) -> None:
    tip = commit_files(pooled, {"deep/b.txt": "b\n", "new.txt": "n\n"})
    inodes = {path.stat().st_ino for path in (pooled / ".builders/.pool").iterdir() if path.is_dir()}
    _, worktree = spawn(af, pooled)  # both are of another commit: this one is brought to the base
    assert worktree.stat().st_ino in inodes
    assert_sound(pooled, worktree)
    wait_until(lambda: set(ready(pooled).values()) == {tip}, what="the slots to be brought up to date")
    _, second = spawn(af, pooled)
    assert_sound(pooled, second)


def test_slots_follow_a_base_that_moved(pooled: Path, af: Af) -> None:
    """By a merge; and when a person commits, as soon as the farm's server looks."""
    id, _ = spawn(af, pooled, "[[file:made.txt:m]]")
    assert af("merge", id).returncode == 0
    tip = git(pooled, "rev-parse", "main")
    wait_until(lambda: list(ready(pooled).values()) == [tip, tip], what="the slots to follow the merge")
    tip = commit_files(pooled, {"new.txt": "n\n"})
    look = "import pathlib; from agent_farm.farm.ready_worktrees import follow_base as f; f(pathlib.Path())"
    subprocess.run([sys.executable, "-c", look], cwd=pooled, check=True)
    wait_until(lambda: list(ready(pooled).values()) == [tip, tip], what="the slots to follow the commit")
    assert af("config", "set", "--user", "spawn.base", "HEAD~1").returncode == 0
    assert af("pool", "fill").returncode == 0
    assert set(ready(pooled).values()) == {git(pooled, "rev-parse", "HEAD~1")}


def test_another_base_is_brought_to_a_slot(pooled: Path, af: Af) -> None:
    _, worktree = spawn(af, pooled, "--shell", "--base", "HEAD~1")
    assert git(worktree, "rev-parse", "HEAD") == git(pooled, "rev-parse", "HEAD~1")
    assert git(worktree, "status", "--porcelain") == ""


def traits(worktree: Path) -> dict[str, object]:
    """What git and a person can see of it, without what is a name or a moment."""
    own = Path(git(worktree, "rev-parse", "--absolute-git-dir"))
    branch = git(worktree, "branch", "--show-current")

    def seen(*words: str) -> str:
        return git(worktree, *words).replace(branch, "BRANCH")

    def log(*ref: str) -> str:
        words = ("reflog", "show", "--format=%H %gs %gn %ge", *ref)
        return seen(*words)

    stale = git(worktree, "diff-files", "--raw")  # first: what follows brings the index up to date
    noted = git(worktree, "ls-files", "--debug").splitlines()
    return {
        "stale in the index": stale,
        "sizes and flags in the index": [
            line for line in noted if not line.startswith(("  ctime", "  mtime", "  dev", "  uid"))
        ],
        "files": {
            str(path.relative_to(worktree)): (path.lstat().st_mode, path.is_file() and path.read_bytes())
            for path in worktree.rglob("*")
            if path.name != ".git"
        },
        "index": git(worktree, "ls-files", "--stage", "-v"),
        "status": seen("status", "--porcelain=v2", "--branch", "--ignored"),
        "git's own files": sorted(str(path.relative_to(own)) for path in own.rglob("*")),
        "reflogs": (log("HEAD"), log(branch)),
        "settings": own_settings(worktree, own.name),
        "mode": worktree.stat().st_mode,
        "sparse": git(worktree, "sparse-checkout", "list", check=False),
    }


def own_settings(worktree: Path, name: str) -> list[str]:
    """Without what is about other worktrees."""
    lines = git(worktree, "config", "--local", "--list").splitlines()
    ours = [line.replace(f"worktrees/{name}.path", "worktrees/NAME.path") for line in lines]
    return [line for line in ours if "worktrees/" not in line or "NAME" in line]


KINDS = [
    "whole",
    "sparse checkout",
    "spawn.sparse",
    "--sparse",
    "submodules",
    "carry",
    "filters",
    "sparse carry",
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_taken_worktree_is_like_a_fresh_one(pooled: Path, af: Af, tmp_path: Path, kind: str) -> None:
    """Also when its slot held another commit."""
    more: tuple[str, ...] = ()
    if kind == "sparse checkout":
        git(pooled, "sparse-checkout", "set", "deep")
    if kind in ("spawn.sparse", "--sparse"):
        commit_files(pooled, {"more/c.txt": "c\n", "other/d.txt": "d\n"})
        assert af("config", "set", "--user", "spawn.sparse", "deep").returncode == 0
    if kind == "--sparse":  # what the slot lacks is added to it
        more = ("--shell", "--sparse", "more,deep")
    if kind == "filters":
        git(pooled, "config", "filter.shout.smudge", "tr a-z A-Z")
        git(pooled, "config", "filter.shout.clean", "tr A-Z a-z")
        commit_files(pooled, {".gitattributes": "*.crlf text eol=crlf\n*.loud filter=shout\n"})
        commit_files(pooled, {"lines.crlf": "one\ntwo\n", "deep/word.loud": "quiet\n"})
    if kind == "sparse carry":
        git(pooled, "sparse-checkout", "set", "deep")
    if "carry" in kind:
        commit_files(pooled, {".gitignore": "out/\n"})
        write_files(pooled, {"out/lib.a": "a\n", "deep/out/lib.a": "d\n"})
        assert af("config", "set", "--user", "worktree.carry", "out").returncode == 0
    if kind == "submodules":
        library = make_repo(tmp_path / "library")
        git(pooled, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib")
        git(pooled, "commit", "-q", "-m", "library")
    assert af("pool", "drain").returncode == 0
    assert af("pool", "fill").stdout == "2 ready\n"
    inodes = {path.stat().st_ino for path in (pooled / ".builders/.pool").iterdir() if path.is_dir()}
    _, taken = spawn(af, pooled, *more)
    assert taken.stat().st_ino in inodes
    wait_until(lambda: len(ready(pooled)) == 2, what="the pool to be whole again")
    commit_files(pooled, {"deep/b.txt": "b\n", "deep/run": "#!/bin/sh\n"})
    if "carry" in kind:
        write_files(pooled, {"out/more.a": "m\n"})
    _, moved = spawn(af, pooled, *more)
    assert af("config", "set", "pool.size", "0").returncode == 0
    af("pool", "drain")
    _, fresh = spawn(af, pooled, *more)
    assert traits(moved) == traits(fresh)
    git(pooled, "reset", "-q", "--hard", "HEAD~1")
    if "carry" in kind:
        (pooled / "out/more.a").unlink()
    _, before = spawn(af, pooled, *more)
    assert traits(taken) == traits(before)


def test_the_pool_turns_on_where_a_checkout_is_dear_and_off_again(repo: Path, af: Af) -> None:
    commit_files(repo, TREE)
    costs = repo / ".agent-farm/checkouts.json"
    spawn(af, repo)
    assert not costs.exists()  # a small repository
    assert "0 ready, 0 wanted: no checkout has taken" in af("pool", "status").stdout
    costs.write_text(json.dumps({"version": 1, "checkouts": [[1.5, 0.8]]}))
    spawn(af, repo)  # this one is cheap, and counts from now on
    wait_until(lambda: not (repo / ".builders/.pool").exists(), what="no pool")
    costs.write_text(json.dumps({"version": 1, "checkouts": [[1.5, 0.8]]}))
    assert "2 wanted: a checkout takes 1.50 s" in af("pool", "status").stdout
    assert af("pool", "fill").returncode == 0
    costs.write_text(json.dumps({"version": 1, "checkouts": [[1.5, 0.05]]}))
    assert "0 wanted: a checkout takes 1.50 s; from" in af("pool", "status").stdout
    assert af("pool", "fill").stdout == "0 ready\n"
    assert len(git(repo, "worktree", "list").splitlines()) == 3
    assert af("config", "set", "pool.auto", "false").returncode == 0
    assert "0 wanted: pool.auto is off" in af("pool", "status").stdout


def test_what_is_done_beside_a_checkout_does_not_make_it_cheap(repo: Path) -> None:
    """git keeps a processor busy all the while."""
    farm = open_farm(repo)
    farm.paths.state.mkdir()
    beside = checkout_cost.Timed(lambda: None)
    with checkout_cost.measured(farm, beside):
        code = "import time\nwhile time.process_time() < 0.5: pass"
        subprocess.run([sys.executable, "-S", "-c", code], check=True)
        beside.seconds = 60.0
    (cost,) = json.loads((farm.paths.state / "checkouts.json").read_text())["checkouts"]
    assert cost[0] >= 0.4


def test_the_disk_bounds_what_nobody_asked_for(repo: Path, af: Af, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is carried; and `af pool status` says so."""
    commit_files(repo, {"twenty.txt": "x" * 19 + "\n", ".gitignore": "out/\n"})
    spawn(af, repo)
    costs = {"version": 1, "checkouts": [[1.5, 0.8]]}
    (repo / ".agent-farm/checkouts.json").write_text(json.dumps(costs))
    monkeypatch.setattr(checkout_cost, "_MOST_BYTES", 100)
    assert planned(open_farm(repo)).size == 2
    write_files(repo, {"out/large": "x" * 90})
    assert af("config", "set", "--user", "worktree.carry", "out").returncode == 0
    found = planned(open_farm(repo))
    assert found.size == 0
    assert found.reason.startswith("a checkout takes 1.50 s; at ")
    assert "no more fit into 5 GB and a tenth" in found.reason


def test_several_at_once_get_a_worktree_each(pooled: Path, af: Af) -> None:
    with ThreadPoolExecutor(6) as threads:
        made = list(threads.map(lambda _: spawn(af, pooled), range(6)))
    assert len({id for id, _ in made}) == 6
    for _, worktree in made:
        assert_sound(pooled, worktree)


def test_a_slot_that_somebody_deleted_is_no_obstacle(pooled: Path, af: Af) -> None:
    for path in list((pooled / ".builders/.pool").iterdir()):
        if path.is_dir():
            shutil.rmtree(path)
    for _ in range(3):
        _, worktree = spawn(af, pooled)
        assert_sound(pooled, worktree)
    wait_until(lambda: len(ready(pooled)) == 2, what="the pool to be whole again")
    assert af("doctor").returncode == 0, af("doctor").stdout


def test_submodules(repo: Path, af: Af, tmp_path: Path) -> None:
    """`git worktree move` refuses a worktree that has some; a slot, where none is checked out, moves."""
    library = make_repo(tmp_path / "library")
    git(repo, "submodule", "add", "-q", str(library), "lib")
    commit_files(repo, TREE)
    af("config", "set", "pool.size", "1")
    assert af("pool", "fill").stdout == "1 ready\n"
    inode = (repo / ".builders/.pool/0").stat().st_ino
    _, worktree = spawn(af, repo)
    assert worktree.stat().st_ino == inode
    assert_sound(repo, worktree)
    allowed = ("-c", "protocol.file.allow=always")
    git(worktree, *allowed, "submodule", "update", "-q", "--init")
    assert_sound(repo, worktree)
    wait_until(lambda: len(ready(repo)) == 1, what="the pool to be whole again")
    git(repo / ".builders/.pool/0", *allowed, "submodule", "update", "-q", "--init")
    assert_sound(repo, spawn(af, repo)[1])  # not from there: its submodule would be lost
    af("pool", "drain")


def test_drain_leaves_nothing(pooled: Path, af: Af) -> None:
    assert af("pool", "drain").stdout == "2 removed\n"
    assert ready(pooled) == {}
    assert len(git(pooled, "worktree", "list").splitlines()) == 1
    assert af("pool", "drain").stdout == "0 removed\n"


def test_the_pool_is_off_by_default(repo: Path, af: Af) -> None:
    done = af("pool", "fill")
    assert done.returncode == 2
    assert "af config set pool.size 2" in done.stderr
    spawn(af, repo)
    assert not (repo / ".builders/.pool").exists()


@pytest.mark.slow
def test_fill_killed_at_each_step(repo: Path, af: Af) -> None:
    commit_files(repo, TREE)
    af("config", "set", "pool.size", "1")
    for step in range(1, 200):
        done = killed(repo, step, "pool", "fill")
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done
        for slot in ready(repo):  # what counts as ready is whole
            place = repo / ".builders/.pool" / slot
            assert git(place, "status", "--porcelain") == "", done.stderr
            assert (place / "deep/b.txt").read_text() == "b\n", done.stderr
        if step % 4 == 0:
            assert af("pool", "fill").stdout == "1 ready\n", done.stderr
            assert af("pool", "drain").stdout == "1 removed\n", done.stderr
            assert len(git(repo, "worktree", "list").splitlines()) == 1, done.stderr
    assert step > 10
    _, worktree = spawn(af, repo)
    assert_sound(repo, worktree)
    af("pool", "drain")
    assert af("doctor").returncode == 0, af("doctor").stdout


def test_spawns_while_the_pool_is_filled(repo: Path, af: Af) -> None:
    commit_files(repo, {f"many/{number}.txt": "x\n" for number in range(300)} | TREE)
    af("config", "set", "pool.size", "4")
    filling = subprocess.Popen(
        [sys.executable, "-m", "agent_farm", "pool", "fill"], cwd=repo, stdout=subprocess.DEVNULL
    )
    made = [spawn(af, repo) for _ in range(4)]
    assert filling.wait(timeout=60) == 0
    for _, worktree in made:
        assert_sound(repo, worktree)
    af("pool", "drain")
