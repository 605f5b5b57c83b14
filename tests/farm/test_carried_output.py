"""`worktree.carry`: ignored output of the main checkout in a new builder, from a ready worktree or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.belongings import files_of
from tests.farm.conftest import Spawned
from tests.gitrepo import commit_files, git, write_files
from tests.waiting import wait_until

Spawn = Callable[..., Spawned]
OUTPUT = {"node_modules/.package-lock.json": "{}\n", "node_modules/x/index.js": "1\n", "sub/out/lib.a": "a\n"}


@pytest.fixture
def built(repo: Path, af: Af) -> Iterator[Path]:
    commit_files(repo, {".gitignore": "node_modules/\nout/\n", "sub/a.txt": "a\n", "src/b.txt": "b\n"})
    write_files(repo, OUTPUT)
    assert af("config", "set", "--user", "worktree.carry", "node_modules,out").returncode == 0
    yield repo
    af("pool", "drain")


def output(root: Path) -> dict[str, object]:
    found = files_of(root).items()
    return {name: one for name, one in found if name.startswith(("node_modules/", "sub/out/"))}


def ready(repo: Path) -> list[dict[str, object]]:
    return [json.loads(path.read_text()) for path in (repo / ".builders/.pool").glob("*.ready")]


def test_a_path_that_names_nothing_is_told_of(built: Path, af: Af) -> None:
    names = "node_modules,nod_modules,sub/out,src,*.none"
    for key in ("worktree.carry", "worktree.link"):
        assert af("config", "set", "--user", key, names).returncode == 0
        said = af("spawn", "--dry-run", "--shell", "--runtime", "demo").stderr
        told = [line for line in said.splitlines() if key in line]
        assert [line.split("'")[1] for line in told] == ["nod_modules", "src"], said
        assert af("config", "unset", "--user", key).returncode == 0


def test_a_builder_has_it_and_it_is_no_work(built: Path, spawn: Spawn, af: Af) -> None:
    builder = spawn("--shell")
    assert output(builder.worktree) == output(built) != {}
    assert builder.git("status", "--porcelain") == ""
    (builder.worktree / "node_modules/x/index.js").write_text("2\n")
    assert (built / "node_modules/x/index.js").read_text() == "1\n"
    done = af("prune", "--stop", builder.id)
    assert done.returncode == 0, done.stderr
    assert af("restore", builder.id).returncode == 0
    assert not (builder.worktree / "node_modules").exists()  # npm's mark is in it
    assert af("resume", builder.id).returncode == 0
    assert af("wait", builder.id, "--timeout", "300").returncode == 0
    assert output(builder.worktree) == output(built)


def test_a_ready_worktree_has_it_and_is_brought_up_to_date(built: Path, spawn: Spawn, af: Af) -> None:
    assert af("config", "set", "--user", "pool.size", "1").returncode == 0
    assert af("pool", "fill").stdout == "1 ready\n"
    slot = built / ".builders/.pool/0"
    assert output(slot) == output(built)
    assert ready(built)[0]["carried"] == ["node_modules/", "sub/out/"]
    inode = (slot / "node_modules/x/index.js").stat().st_ino
    write_files(built, {"node_modules/y/new.js": "y\n", "sub/out/lib.a": "changed\n"})
    (built / "node_modules/.package-lock.json").unlink()
    builder = spawn("--shell")
    assert (builder.worktree / "node_modules/x/index.js").stat().st_ino == inode
    assert output(builder.worktree) == output(built)
    wait_until(lambda: len(ready(built)) == 1, what="the pool to be whole again")


def test_where_it_would_be_work_it_stays_away(built: Path, spawn: Spawn, af: Af) -> None:
    """On a base that tracks it, or does not ignore it, and in a sparse checkout without its directory."""
    git(built, "switch", "-q", "-c", "tracks")
    write_files(built, {"node_modules/x/index.js": "tracked\n"})
    git(built, "add", "-f", "node_modules/x/index.js")
    write_files(built, {".gitignore": "node_modules/\n"})
    git(built, "commit", "-q", "-a", "-m", "tracks")
    git(built, "switch", "-q", "main")
    write_files(built, OUTPUT)
    assert af("config", "set", "--user", "pool.size", "1").returncode == 0
    assert af("pool", "fill").stdout == "1 ready\n"
    other = spawn("--shell", "--base", "tracks")
    assert other.git("status", "--porcelain") == ""
    assert (other.worktree / "node_modules/x/index.js").read_text() == "tracked\n"
    assert not (other.worktree / "sub/out").exists()
    sparse = spawn("--shell", "--sparse", "src")
    assert set(output(sparse.worktree)) >= {"node_modules/x/index.js"}
    assert not (sparse.worktree / "sub").exists()
    wait_until(lambda: len(ready(built)) == 1, what="the pool to be whole again")


def test_of_a_repository_it_needs_consent(built: Path, af: Af) -> None:
    assert af("config", "unset", "--user", "worktree.carry").returncode == 0
    assert af("config", "set", "--user", "pool.size", "1").returncode == 0
    commit_files(built, {"agent-farm.toml": '[worktree]\ncarry = ["node_modules"]\n'})
    assert af("pool", "fill").returncode == 0
    assert not (built / ".builders/.pool/0/node_modules").exists()
    done = af("spawn", "--shell", "--runtime", "demo")
    assert done.returncode != 0
    assert "agent-farm.toml worktree.carry: node_modules" in done.stderr


def test_setup_brings_what_is_missing(built: Path, spawn: Spawn, af: Af) -> None:
    builder = spawn("--shell")
    (builder.worktree / "node_modules/x/index.js").write_text("mine\n")
    (builder.worktree / "sub/out/lib.a").unlink()
    assert af("setup", builder.id).returncode == 0
    assert (builder.worktree / "node_modules/x/index.js").read_text() == "mine\n"
    assert (builder.worktree / "sub/out/lib.a").read_text() == "a\n"
