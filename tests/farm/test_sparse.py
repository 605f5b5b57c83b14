"""`af spawn --sparse`: a builder with some directories alone, and a repository that no tool stumbles over."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.conftest import Spawned, status_of
from tests.gitrepo import commit_files, git, write_files

FILES = {
    "top.txt": "t\n",
    "src/a.txt": "a\n",
    "src/deep/b.txt": "b\n",
    "docs/c.txt": "c\n",
    "lib/d.txt": "d\n",
}
SRC = {"README.md", "top.txt", "src/a.txt", "src/deep/b.txt"}
Spawn = Callable[..., Spawned]


@pytest.fixture
def wide(repo: Path) -> Path:
    commit_files(repo, FILES)
    return repo


def files(tree: Path) -> set[str]:
    found = (path for path in tree.rglob("*") if path.is_file() and path.name != ".git")
    return {str(path.relative_to(tree)) for path in found}


def test_some_directories_alone(wide: Path, spawn: Spawn, af: Af) -> None:
    """git sees a sparse checkout in cone mode; of the repository only a conditional include is new."""
    before = git(wide, "config", "--local", "--list")
    builder = spawn("--shell", "--sparse", "src/deep/,src")
    assert files(builder.worktree) == SRC
    assert builder.git("sparse-checkout", "list") == "src"
    assert builder.git("status", "--porcelain") == ""
    shown = status_of(af, builder.id)
    assert shown["sparse"] == ["src"]
    assert "= sparse" in af("status").stdout
    more = set(git(wide, "config", "--local", "--list").splitlines()) - set(before.splitlines())
    assert [one.partition("=")[0] for one in more] == [f"includeif.gitdir:./worktrees/{builder.id}.path"]
    assert files(spawn("--shell").worktree) == {"README.md", *FILES}
    assert "sparse" not in git(wide, "status")
    assert git(wide, "config", "core.sparseCheckout", check=False) == ""
    builder.git("sparse-checkout", "add", "lib")
    assert "lib/d.txt" in files(builder.worktree)


def test_what_the_task_names_is_there_too(wide: Path, spawn: Spawn, af: Af) -> None:
    builder = spawn("Read it", "--files", "docs/c.txt", "--sparse", "src")
    assert files(builder.worktree) >= {*SRC, "docs/c.txt"}
    done = af("spawn", "--shell", "--runtime", "demo", "--json", "--sparse", "src", cwd=wide / "lib")
    assert done.returncode == 1, done.stdout  # a name is meant from where one stands
    done = af("spawn", "--shell", "--runtime", "demo", "--json", "--sparse", "../src", cwd=wide / "lib")
    assert json.loads(done.stdout)["builder"]["sparse"] == ["lib", "src"]


def test_the_setting_and_the_whole(wide: Path, spawn: Spawn, af: Af) -> None:
    assert af("config", "set", "spawn.sparse", "src").returncode == 0
    assert files(spawn("--shell").worktree) == SRC
    assert files(spawn("--shell", "--sparse", "docs").worktree) == {"README.md", "top.txt", "docs/c.txt"}
    assert files(spawn("--shell", "--sparse", ".").worktree) == {"README.md", *FILES}
    plan = json.loads(af("spawn", "--shell", "--runtime", "demo", "--dry-run", "--json").stdout)["plan"]
    assert plan["sparse"] == ["src"]
    assert af("config", "set", "spawn.sparse", "../out").returncode == 0
    done = af("spawn", "--shell", "--runtime", "demo")
    assert done.returncode == 1
    assert "spawn.sparse: '../out' is not a directory" in done.stderr


@pytest.mark.parametrize("name", ["scr", "top.txt", "../x", "/etc", "src\nx", ".git"])
def test_what_is_no_directory_is_refused_by_name(wide: Path, af: Af, name: str) -> None:
    done = af("spawn", "--shell", "--runtime", "demo", "--sparse", name)
    assert done.returncode in (1, 2)
    assert name.replace("\n", "\n  ") in done.stderr
    assert not (wide / ".builders").exists() or not list((wide / ".builders").iterdir())
    assert git(wide, "branch", "--list", "builder/*") == ""
    if name == "scr":
        assert "The nearest name is src" in done.stderr


def test_hostile_names(repo: Path, spawn: Spawn) -> None:
    names = ['we ird*"x', "-b", "[a]", "\\", "ü é", "#c", "!n"]
    commit_files(repo, {f"{name}/in": "x\n" for name in [*names, "other"]})
    for name in names:
        builder = spawn("--shell", "--sparse", name)
        assert files(builder.worktree) == {"README.md", f"{name}/in"}, name


def test_work_goes_its_way(wide: Path, spawn: Spawn, af: Af) -> None:
    """Diff, check, merge, removal and restore are as with every builder; a check has the whole tree."""
    assert af("config", "set", "check.command", "cat docs/c.txt src/new.txt").returncode == 0
    commit_files(wide, {"agent-farm.toml": (wide / "agent-farm.toml").read_text()})
    builder = spawn("--shell", "--sparse", "src", "--yes").stop()
    commit_files(builder.worktree, {"src/new.txt": "new\n"})
    commit_files(wide, {"docs/c.txt": "moved\n"})
    assert "+new" in af("diff", builder.id).stdout
    assert "docs" not in af("diff", builder.id).stdout
    done = af("check", builder.id, "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    done = af("prune", builder.id, "--discard-commits")
    assert done.returncode == 0, done.stderr
    git(wide, "worktree", "prune", "--expire=now")
    assert af("restore", builder.id).returncode == 0
    assert files(builder.worktree) == {*SRC, "agent-farm.toml", "src/new.txt"}
    assert builder.git("sparse-checkout", "list") == "src"
    assert builder.git("status", "--porcelain") == ""
    done = af("merge", builder.id, "--yes")
    assert done.returncode == 0, done.stderr
    assert (wide / "src/new.txt").read_text() == "new\n"
    assert (wide / "docs/c.txt").read_text() == "moved\n"


def test_nothing_is_left_of_it(wide: Path, spawn: Spawn, af: Af) -> None:
    builder = spawn("--shell", "--sparse", "src").stop()
    assert af("prune", builder.id).returncode == 0
    assert "includeIf" in (wide / ".git/config").read_text()  # it can still be restored
    assert af("prune", "--expire", "0s").returncode == 0
    assert "includeIf" not in (wide / ".git/config").read_text()
    assert af("uninstall", "--yes").returncode == 0
    assert not (wide / ".git/agent-farm-sparse").exists()


def test_doctor_makes_it_again(wide: Path, spawn: Spawn, af: Af) -> None:
    builder = spawn("--shell", "--sparse", "src").stop()
    git(wide, "worktree", "remove", "--force", str(builder.worktree))
    assert af("doctor", "--fix").returncode == 0
    assert files(builder.worktree) == SRC
    assert builder.git("status", "--porcelain") == ""


def test_uncommitted_changes_go_along(wide: Path, spawn: Spawn, af: Af) -> None:
    assert af("config", "set", "--user", "worktree.uncommitted", "true").returncode == 0
    write_files(wide, {"src/a.txt": "changed\n", "src/new.txt": "new\n"})
    git(wide, "add", "src/new.txt")
    builder = spawn("--shell", "--sparse", "src")
    assert builder.git("status", "--porcelain") == "M src/a.txt\nA  src/new.txt"
    assert files(builder.worktree) == {*SRC, "src/new.txt"}


def test_it_moves_with_its_repository(wide: Path, spawn: Spawn, af: Af) -> None:
    builder = spawn("--shell", "--sparse", "src").stop()
    moved = wide.with_name("moved")
    wide.rename(moved)
    assert af("status", cwd=moved).returncode == 0
    tree = moved / ".builders" / builder.id
    assert git(tree, "sparse-checkout", "list") == "src"
    assert git(tree, "status", "--porcelain") == ""


@pytest.mark.slow
def test_in_worktrees_of_a_bare_repository(wide: Path, tmp_path: Path, af: Af) -> None:
    project = tmp_path / "project"
    git(tmp_path, "clone", "-q", "--bare", str(wide), str(project / ".bare"))
    git(project / ".bare", "worktree", "add", "-q", "../main")
    done = af("spawn", "--shell", "--sparse", "src", "--runtime", "demo", "--json", cwd=project / "main")
    assert done.returncode == 0, done.stdout
    tree = Path(json.loads(done.stdout)["builder"]["worktree"])
    assert files(tree) == SRC
    assert git(tree, "status", "--porcelain") == git(project / "main", "status", "--porcelain") == ""
    assert git(project / ".bare", "rev-parse", "--is-bare-repository") == "true"


@pytest.mark.parametrize("cone", ["--cone", "--no-cone"])
def test_in_a_checkout_that_is_sparse_itself(wide: Path, spawn: Spawn, cone: str) -> None:
    git(wide, "sparse-checkout", "set", cone, "docs")
    builder = spawn("--shell", "--sparse", "src")
    assert files(builder.worktree) == SRC
    assert git(wide, "sparse-checkout", "list") == "docs"


def test_one_that_waits_in_the_queue_stays_sparse(wide: Path, spawn: Spawn, af: Af) -> None:
    assert af("config", "set", "limits.max_builders", "1").returncode == 0
    first = spawn("--shell")
    done = af("spawn", "--shell", "--runtime", "demo", "--sparse", "src", "--json")
    id = json.loads(done.stdout)["builder"]["id"]
    assert status_of(af, id)["status"]["state"] == "queued"
    first.stop()
    assert af("queue").returncode == 0
    assert af("wait", id, "--timeout", "300").returncode == 0
    assert files(wide / ".builders" / id) == SRC
