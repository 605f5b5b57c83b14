"""Farms that are moved, renamed, copied, reached by a second path, or mounted elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_farm.processes import processes_of_runs
from tests.conftest import Af
from tests.farm.conftest import Spawned, status_of
from tests.farm.stopping import killed
from tests.gitrepo import git, make_repo
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

Spawn = Callable[..., Spawned]


def unfinished(builder: Spawned) -> str:
    """Staged, removed from disk, untracked: what only the worktree's index and files know."""
    (builder.worktree / "staged.txt").write_text("staged\n")
    builder.git("add", "staged.txt")
    (builder.worktree / "staged.txt").unlink()
    (builder.worktree / "untracked.txt").write_text("untracked\n")
    return builder.git("status", "--short")


def everything_below(root: Path) -> dict[str, bytes]:
    """What is there, as bytes; what `af` writes while it looks is left out."""
    passing = ("git-states.json", ".lock", "butler.db")
    return {
        os.fspath(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink() and not path.name.endswith(passing)
    }


def ports() -> dict[str, dict[str, list[int]]]:
    file = Path(os.environ["XDG_STATE_HOME"]) / "agent-farm/ports.json"
    farms: dict[str, dict[str, list[int]]] = json.loads(file.read_text())["farms"]
    return farms


@pytest.mark.parametrize("first", [("status",), ("doctor", "--fix"), ("diff", "ID"), ("prune",)])
def test_a_moved_farm_goes_on(spawn: Spawn, af: Af, repo: Path, first: tuple[str, ...]) -> None:
    builder = spawn().stop()
    before = unfinished(builder)
    reserved = ports()[os.fspath(repo)][builder.id]
    moved = repo.rename(repo.parent / "new name")
    done = af(*(builder.id if word == "ID" else word for word in first), cwd=moved)
    assert f"The farm was moved from {repo}; 1 worktree followed." in done.stderr
    assert done.returncode == 0, done
    assert git(moved / ".builders" / builder.id, "status", "--short") == before
    assert ports()[os.fspath(moved)][builder.id] == reserved
    assert os.fspath(repo) not in ports()
    assert not repo.exists()
    quiet = af("doctor", cwd=moved)
    assert builder.id not in quiet.stdout, quiet
    assert "moved" not in af("status", cwd=moved).stderr
    resumed = af("resume", builder.id, cwd=moved)
    assert resumed.returncode == 0, resumed
    assert af("stop", builder.id, cwd=moved).returncode == 0
    removed = af("prune", builder.id, "--discard-changes", "--discard-commits", cwd=moved)
    assert removed.returncode == 0, removed
    back = af("restore", builder.id, cwd=moved)
    assert back.returncode == 0, back
    assert git(moved / ".builders" / builder.id, "status", "--short") == before


def test_what_was_removed_before_the_move_comes_back_after_it(spawn: Spawn, af: Af, repo: Path) -> None:
    builder = spawn().stop()
    before = unfinished(builder)
    assert af("prune", builder.id, "--discard-changes", "--discard-commits").returncode == 0
    moved = repo.rename(repo.parent / "moved")
    assert af("restore", builder.id, cwd=moved).returncode == 0
    assert git(moved / ".builders" / builder.id, "status", "--short") == before
    assert not repo.exists()


def test_what_runs_is_still_found_after_a_move(spawn: Spawn, af: Af, repo: Path) -> None:
    builder = spawn("--shell")
    moved = repo.rename(repo.parent / "moved")
    done = af("status", "--json", cwd=moved)
    assert f"af stop {builder.id}, then af resume" in done.stderr
    assert json.loads(done.stdout)["builders"][0]["status"]["state"] not in ("lost", "unknown")
    assert af("stop", builder.id, cwd=moved).returncode == 0
    assert af("resume", builder.id, cwd=moved).returncode == 0
    assert json.loads(af("status", "--json", cwd=moved).stdout)["builders"][0]["worktree"] == os.fspath(
        moved / ".builders" / builder.id
    )


def test_what_was_lost_before_the_move_is_recovered(spawn: Spawn, af: Af, repo: Path) -> None:
    builder = spawn("--shell")
    run = json.loads((repo / ".agent-farm/registry.json").read_text())["builders"][builder.id]["run"]
    subprocess.run(["tmux", "kill-server"], check=True)
    wait_until(lambda: not processes_of_runs([run]), what="its processes to end")
    moved = repo.rename(repo.parent / "moved")
    done = af("status", cwd=moved)
    assert f"No longer running: {builder.id}. af recover starts them again." in done.stderr
    assert af("recover", "--yes", cwd=moved).returncode == 0
    shown = json.loads(af("status", "--json", cwd=moved).stdout)["builders"][0]
    assert shown["status"]["state"] not in ("lost", "unknown")


def test_a_farm_that_is_made_in_the_old_place_is_another_one(spawn: Spawn, af: Af, repo: Path) -> None:
    """The worktrees follow, and none of the new farm's is taken over."""
    (repo / "codev/specs").mkdir(parents=True)
    (repo / "codev/specs/0009-login.md").write_text("# Login\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "spec")
    builder = spawn("-p", "9").stop()
    moved = repo.rename(repo.parent / "moved")
    git(repo.parent, "clone", "-q", os.fspath(moved), os.fspath(repo))
    assert af("spawn", "-p", "9", "--runtime", "demo").returncode == 0
    assert af("wait", "0009").returncode == 0  # its commit is in the list
    before = git(repo, "worktree", "list")
    done = af("status", cwd=moved)
    assert "The farm was moved" in done.stderr
    assert git(moved / ".builders/0009", "rev-parse", "--git-common-dir") == os.fspath(moved / ".git")
    assert git(repo / ".builders/0009", "rev-parse", "--git-common-dir") == os.fspath(repo / ".git")
    assert git(repo, "worktree", "list") == before
    assert builder.id == "0009"


@pytest.mark.parametrize(
    "words",
    [("status",), ("stop", "--all"), ("doctor", "--fix"), ("send", "ID", "hi"), ("prune", "--stop", "ID")],
)
def test_a_copy_leaves_the_original_alone(spawn: Spawn, af: Af, repo: Path, words: tuple[str, ...]) -> None:
    builder = spawn("--shell")
    state = builder.state
    copy = repo.parent / "copy"
    shutil.copytree(repo, copy, symlinks=True)
    before = everything_below(repo)
    first = af(*(builder.id if word == "ID" else word for word in words), cwd=copy)
    assert f"This is a copy of {repo}" in first.stderr
    af("doctor", "--fix", cwd=copy)
    assert everything_below(repo) == before
    assert builder.state == state
    assert builder.git("rev-parse", "--git-common-dir") == os.fspath(repo / ".git")
    assert os.fspath(repo) in ports()
    if words[0] != "prune":
        (mine,) = json.loads(af("status", "--json", cwd=copy).stdout)["builders"]
        assert mine["status"]["state"] == "stopped"
        assert mine["reason"] == f"copied from {repo}"
        assert set(mine["ports"]).isdisjoint(ports()[os.fspath(repo)][builder.id])
        assert git(copy / ".builders" / builder.id, "rev-parse", "--git-common-dir") == os.fspath(
            copy / ".git"
        )
        assert af("resume", builder.id, cwd=copy).returncode == 0
        assert builder.state == state


def test_a_copy_of_a_farm_that_moved_unseen_leaves_it_alone(spawn: Spawn, af: Af, repo: Path) -> None:
    """Neither of the two is where the farm was at home; its processes tell which one it is."""
    builder = spawn("--shell")
    moved, copy = repo.parent / "moved", repo.parent / "copy"
    repo.rename(moved)
    shutil.copytree(moved, copy, symlinks=True)
    done = af("stop", "--all", cwd=copy)
    assert f"This is a copy of {moved}" in done.stderr
    assert af("doctor", "--fix", cwd=copy).returncode == 0
    status = af("status", "--json", cwd=moved)
    assert "The farm was moved" in status.stderr
    (mine,) = json.loads(status.stdout)["builders"]
    assert (mine["id"], mine["status"]["state"]) == (builder.id, "idle")
    for place in (moved, copy):
        worktree = place / ".builders" / builder.id
        assert git(worktree, "rev-parse", "--git-common-dir") == os.fspath(place / ".git")


def test_a_copy_takes_no_server_and_no_token_along(spawn: Spawn, af: Af, repo: Path) -> None:
    spawn("--shell")
    state = repo / ".agent-farm"
    for name in ("server.json", "architect.token", "dashboard-logins.json"):
        (state / name).write_text("{}")
    shutil.copytree(repo, repo.parent / "copy", symlinks=True)
    assert af("status", cwd=repo.parent / "copy").returncode == 0
    assert not {"server.json", "architect.token"} & set(os.listdir(repo.parent / "copy/.agent-farm"))
    assert {"server.json", "architect.token", "dashboard-logins.json"} <= set(os.listdir(state))


def test_work_in_a_copy_is_whole(spawn: Spawn, af: Af, repo: Path) -> None:
    builder = spawn().stop()
    before = unfinished(builder)
    shutil.copytree(repo, repo.parent / "copy", symlinks=True)
    tree = repo.parent / "copy/.builders" / builder.id
    assert af("status", cwd=repo.parent / "copy").returncode == 0
    assert git(tree, "status", "--short") == before
    git(tree, "commit", "-qm", "only in the copy")
    assert builder.git("status", "--short") == before
    assert git(repo, "rev-parse", builder.branch) != git(tree, "rev-parse", "HEAD")


def _with_mounts(script: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("mount namespaces are not permitted here")
    return subprocess.run(
        ["unshare", "-m", "sh", "-ec", script], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("words", ["status", "doctor --fix", "prune", "stop --all"])
def test_a_farm_that_is_mounted_elsewhere_is_left_as_it_is(
    spawn: Spawn, repo: Path, tmp_path: Path, words: str
) -> None:
    """In a container the old path is hidden: nothing is destroyed on either side."""
    builder = spawn()
    before = unfinished(builder)
    files = everything_below(repo)
    (tmp_path / "workspace").mkdir()
    done = _with_mounts(
        f"mount --bind {repo} {tmp_path}/workspace; mount -t tmpfs none {repo}; cd {tmp_path}/workspace;"
        f"{sys.executable} -m agent_farm {words}"
    )
    assert done.returncode == 1, done
    assert f"home is {repo}, which cannot be seen" in done.stderr
    assert "hint: af doctor --moved" in done.stderr
    assert everything_below(repo) == files
    assert builder.git("status", "--short") == before
    assert status_of(builder.af, builder.id)["status"]["state"] == "idle"


def test_a_second_path_to_the_same_farm_changes_nothing(spawn: Spawn, repo: Path, tmp_path: Path) -> None:
    builder = spawn("--shell")
    home = (repo / ".agent-farm/home.json").read_bytes()
    (tmp_path / "second").mkdir()
    done = _with_mounts(
        f"mount --bind {repo} {tmp_path}/second; cd {tmp_path}/second;"
        f"{sys.executable} -m agent_farm path {builder.id}; {sys.executable} -m agent_farm status"
    )
    assert done.returncode == 0, done
    assert os.fspath(builder.worktree) in done.stdout
    assert "moved" not in done.stderr
    assert (repo / ".agent-farm/home.json").read_bytes() == home


def test_one_may_say_that_it_was_moved(spawn: Spawn, af: Af, repo: Path) -> None:
    builder = spawn().stop()
    file = repo / ".agent-farm/home.json"
    document = json.loads(file.read_text())
    file.write_text(json.dumps({**document, "namespace": "mnt:[1]"}))
    moved = repo.rename(repo.parent / "moved")
    refused = af("status", cwd=moved)
    assert refused.returncode == 1
    assert "hint: af doctor --moved" in refused.stderr
    assert af("doctor", "--moved", cwd=moved).returncode == 0
    assert af("diff", builder.id, "--stat", cwd=moved).returncode == 0


@pytest.mark.parametrize(
    "change",
    [{"root": "/a\0b"}, {"root": "../elsewhere"}, {"begun": ["/\0"]}, {"former": ["../x"]}, {"farm": 7}],
)
def test_what_cannot_be_a_home_is_written_again(af: Af, repo: Path, change: dict[str, object]) -> None:
    """It names directories that are looked into: an archive that somebody unpacked may hold any."""
    assert af("spawn", "--shell", "--runtime", "demo").returncode == 0
    file = repo / ".agent-farm/home.json"
    document = json.loads(file.read_text())
    file.write_text(json.dumps({**document, **change}))
    done = af("status")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(file.read_text())["root"] == os.fspath(repo)


def test_a_home_that_a_newer_af_wrote_is_refused_by_name_and_kept(af: Af, repo: Path) -> None:
    assert af("spawn", "--shell", "--runtime", "demo").returncode == 0
    file = repo / ".agent-farm/home.json"
    newer = json.dumps({**json.loads(file.read_text()), "version": 99, "place": "elsewhere"})
    file.write_text(newer)
    done = af("status")
    assert done.returncode == 1
    assert f"{file} has version 99" in done.stderr
    assert file.read_text() == newer


def test_a_farm_cut_short_while_it_follows_is_followed_again(spawn: Spawn, repo: Path) -> None:
    builder = spawn().stop()
    before = unfinished(builder)
    moved = repo.rename(repo.parent / "moved")
    for step in range(1, 60):
        done = killed(moved, step, "path", builder.id)
        if done.returncode == 0:
            break
    assert done.returncode == 0, done
    assert git(moved / ".builders" / builder.id, "status", "--short") == before


def test_a_repository_without_builders_has_no_home(af: Af, tmp_path: Path) -> None:
    quiet = make_repo(tmp_path / "quiet")
    assert af("status", cwd=quiet).returncode == 0
    assert not (quiet / ".agent-farm").exists()
