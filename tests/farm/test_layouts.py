"""Repositories that are laid out otherwise: another hash, submodules, shared directories; setup again."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agent_farm.farm.farm import open_farm
from agent_farm.operations.farms import farms
from agent_farm.operations.operation import Context, Nothing
from agent_farm.paths import FarmPaths
from tests.conftest import Af
from tests.farm.traces import all_sessions
from tests.gitrepo import commit_files, git, make_repo, write_files
from tests.waiting import wait_until


def spawn(af: Af, *args: str, **more: Any) -> dict[str, Any]:
    done = af("spawn", "--runtime", "demo", "--json", "--yes", *args, **more)
    assert done.returncode == 0, done.stdout
    builder: dict[str, Any] = json.loads(done.stdout)["builder"]
    assert af("wait", builder["id"], "--timeout", "60", **more).returncode == 0
    return builder


def test_the_whole_life_in_a_repository_of_sha_256(tmp_path: Path, af: Af) -> None:
    root = tmp_path / "sha256"
    git(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256", str(root))
    commit_files(root, {"dir/a": "a\n", "gone": "g\n"})
    id = spawn(af, "[[file:dir/a:b]]", cwd=root)["id"]
    assert len(git(root, "rev-parse", "HEAD")) == 64
    git(root / ".builders" / id, "rm", "-q", "gone")
    git(root / ".builders" / id, "commit", "-qm", "gone")
    (root / ".builders" / id / "new").write_text("new")
    assert "gone" in af("diff", id, cwd=root).stdout
    assert af("merge", "--strategy", "squash", id, cwd=root).returncode == 0
    assert not (root / "gone").exists()
    assert git(root, "status", "--porcelain") == ""
    assert af("prune", "--stop", id, cwd=root).returncode == 4
    assert af("prune", "--stop", "--discard-changes", id, cwd=root).returncode == 0
    assert af("restore", id, cwd=root).returncode == 0
    assert (root / ".builders" / id / "new").read_text() == "new"
    assert "problem" not in af("doctor", cwd=root).stdout


@pytest.mark.slow
def test_the_whole_life_in_worktrees_of_a_bare_repository(repo: Path, tmp_path: Path, af: Af) -> None:
    """As many lay it out: `.bare`, a `.git` beside it that names it, and a directory for each branch."""
    project, side = tmp_path / "project", tmp_path / "project/side"
    git(tmp_path, "clone", "-q", "--bare", str(repo), str(project / ".bare"))
    (project / ".git").write_text("gitdir: ./.bare\n")
    git(project, "worktree", "add", "-q", "main")
    git(project, "worktree", "add", "-q", "-b", "side", "side")
    id = spawn(af, "One", cwd=project)["id"]
    other = spawn(af, "Two", cwd=side)["id"]
    (session,) = (name for name in all_sessions() if name.endswith(id))
    assert session.startswith("af-project-")
    (shown,) = farms.answer_to(Context(open_farm(side)), Nothing()).farms
    assert (shown.name, shown.root) == ("project", str(project / "main"))
    for place in (project, side, project / "main", project / "main/.builders" / id):
        assert {id, other} <= set(af("status", cwd=place).stdout.split())
    assert "new file mode" in af("diff", id, cwd=side).stdout
    assert af("merge", other, cwd=side).returncode == 0
    assert [*side.glob("demo-*")]
    wrong = af("merge", id, cwd=side)
    assert wrong.returncode == 1
    assert f"hint: cd {project}/main && af merge {id}" in wrong.stderr
    assert af("merge", id, cwd=project).returncode == 0
    assert [*(project / "main").glob("demo-*")]
    assert git(project / "main", "status", "--porcelain") == ""
    (project / "main/.builders" / id / "new").write_text("new")
    assert af("prune", "--stop", id, cwd=project).returncode == 4
    assert af("prune", "--stop", "--discard-changes", id, cwd=project).returncode == 0
    assert af("prune", "--stop", other, cwd=side).returncode == 0
    assert af("restore", id, cwd=side).returncode == 0
    assert (project / "main/.builders" / id / "new").read_text() == "new"
    assert "problem" not in af("doctor", cwd=project).stdout


@pytest.mark.slow
def test_a_bare_project_that_was_moved(repo: Path, tmp_path: Path, af: Af) -> None:
    project, moved = tmp_path / "project", tmp_path / "moved"
    git(tmp_path, "clone", "-q", "--bare", str(repo), str(project / "b.git"))
    git(project / "b.git", "worktree", "add", "-q", "../main")
    id = spawn(af, "One", cwd=project / "main")["id"]
    assert af("stop", id, cwd=project / "main").returncode == 0
    project.rename(moved)
    refused = af("status", cwd=moved / "b.git")
    assert f"hint: git -C {moved}/b.git worktree repair {moved}/main" in refused.stderr
    git(moved / "b.git", "worktree", "repair", str(moved / "main"))
    before = FarmPaths(project / "main", called="b").farm_name
    assert "The farm was moved" in af("status", cwd=moved / "b.git").stderr
    assert json.loads((moved / "main/.agent-farm/home.json").read_text())["former"] == [before]
    assert af("merge", id, cwd=moved / "b.git").returncode == 0
    assert [*(moved / "main").glob("demo-*")]


def test_linked_directories_are_shared_and_git_does_not_see_the_links(repo: Path, af: Af) -> None:
    settings = '[worktree]\nlink = ["deps"]\ncopy = ["deps", ".env"]\n'
    commit_files(repo, {".gitignore": "deps/\n.env\n", "agent-farm.toml": settings, "web/a": ""})
    write_files(repo, {"deps/one": "1", "web/deps/two": "2", ".env": "K=1"})
    tree = Path(spawn(af, "[[say:hi]]")["worktree"])
    assert (tree / "deps").readlink() == repo / "deps"
    assert (tree / "web/deps").readlink() == repo / "web/deps"
    assert not (tree / ".env").is_symlink()
    assert git(tree, "status", "--porcelain") == ""
    (tree / "deps/one").write_text("shared")
    assert (repo / "deps/one").read_text() == "shared"
    assert af("prune", "--stop", tree.name, "--discard-commits").returncode == 0
    assert af("prune", "--expire", "0d").returncode == 0
    assert (repo / "deps/one").read_text() == "shared"


def test_names_that_begin_alike_or_are_no_utf_8_are_linked_and_copied(repo: Path, af: Af) -> None:
    settings = '[worktree]\nlink = [".env", "*.bin"]\ncopy = [".env.local"]\n'
    commit_files(repo, {".gitignore": ".env*\n*.bin\n", "agent-farm.toml": settings})
    odd = os.fsdecode(b"caf\xe9.bin")
    write_files(repo, {".env": "K=1", ".env.local": "K=2", odd: "x"})
    tree = Path(spawn(af, "[[say:hi]]")["worktree"])
    assert (tree / ".env").is_symlink()
    assert (tree / ".env.local").read_text() == "K=2"
    assert (tree / odd).is_symlink()
    assert git(tree, "status", "--porcelain") == ""


def test_submodules_are_filled_when_asked_and_setup_runs_again(
    repo: Path, af: Af, tmp_path: Path, home: Path
) -> None:
    git(repo, "config", "--global", "protocol.file.allow", "always")
    inner = make_repo(tmp_path / "inner", {"s": "inside\n"})
    git(repo, "submodule", "add", "-q", str(inner), "dep")
    settings = (
        '[worktree]\nsubmodules = true\nsetup = "cat dep/s > made; echo $AF_PORT >> made"\ncopy = [".env"]\n'
    )
    commit_files(repo, {".gitignore": "made\n.env\n", "agent-farm.toml": settings})
    builder = spawn(af, "[[say:hi]]")
    tree = Path(builder["worktree"])
    made = f"inside\n{builder['ports'][0]}\n"
    assert (tree / "made").read_text() == made
    (tree / "made").unlink()
    (repo / ".env").write_text("K=1")
    assert af("setup", builder["id"]).returncode == 0
    assert ((tree / "made").read_text(), (tree / ".env").read_text()) == (made, "K=1")
    (repo / "agent-farm.toml").write_text('[worktree]\nsetup = "echo broken >&2; exit 3"\n')
    assert af("setup", builder["id"]).returncode != 0  # nobody agreed to that command
    done = af("setup", "--yes", builder["id"])
    assert (done.returncode, "exited 3" in done.stderr, "broken" in done.stderr) == (1, True, True)


def test_two_that_set_up_the_same_builder_do_not_do_it_at_once(repo: Path, af: Af) -> None:
    id = spawn(af, "[[say:hi]]")["id"]
    waits = f"echo begun >> {repo}/begun; while [ ! -e {repo}/go ]; do sleep 0.05; done"
    assert af("config", "set", "worktree.setup", waits).returncode == 0
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(af, "setup", "--yes", id)
        wait_until((repo / "begun").exists, what="the first one to begin")
        second = af("setup", "--yes", id)
        (repo / "go").touch()
        assert first.result().returncode == 0
    assert (second.returncode, f"{id} is already being set up" in second.stderr) == (1, True)
    assert (repo / "begun").read_text() == "begun\n"
    assert not list((repo / ".agent-farm/locks").glob("setup-*"))
    assert af("config", "set", "limits.max_builders", "1").returncode == 0
    assert af("spawn", "--runtime", "demo", "--name", "later", "--yes", "x").returncode == 0
    assert "later has not started" in af("setup", "later").stderr


@pytest.mark.parametrize("what", ["link", "submodules"])
def test_what_a_repository_wants_to_share_or_fetch_is_asked_about(repo: Path, af: Af, what: str) -> None:
    value = '["x"]' if what == "link" else "true"
    commit_files(repo, {"agent-farm.toml": f"[worktree]\n{what} = {value}\n"})
    done = af("spawn", "--runtime", "demo", "text")
    assert done.returncode != 0
    assert f"worktree.{what}" in done.stderr
