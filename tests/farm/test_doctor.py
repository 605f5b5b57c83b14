"""Every half-state is explained by `af doctor` and healed by `af doctor --fix`; people's things stay."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm import shims
from tests.farm.conftest import Spawned
from tests.farm.traces import traces
from tests.gitrepo import commit_files, git, write_files

Spawn = Callable[..., Spawned]


def explained(af: Af, *words: str) -> None:
    """A problem that names all of `words`, exit code 1, and the hint to heal it."""
    done = af("doctor")
    assert done.returncode == 1, done.stdout
    assert any(all(word in line for word in words) for line in done.stdout.splitlines()), done.stdout
    assert "af doctor --fix" in done.stderr


def healed(af: Af) -> str:
    done = af("doctor", "--fix")
    assert done.returncode == 0, done.stdout + done.stderr
    again = af("doctor")
    assert again.returncode == 0, again.stdout
    return done.stdout


def test_a_healthy_farm_has_no_problem(af: Af, spawn: Spawn) -> None:
    spawn()
    done = af("doctor")
    assert done.returncode == 0
    assert "problem" not in done.stdout


def test_a_settings_file_that_is_no_toml_has_a_next_command(af: Af, repo: Path) -> None:
    (repo / "agent-farm.toml").write_text("[spawn\n")
    done = af("doctor")
    assert done.returncode == 1
    assert "is not valid TOML" in done.stdout
    assert f"hint: ${{EDITOR:-vi}} {repo / 'agent-farm.toml'}\n" in done.stderr


def test_a_worktree_that_was_deleted_is_checked_out_again(af: Af, spawn: Spawn) -> None:
    builder = spawn().stop()
    tip = builder.tip
    shutil.rmtree(builder.worktree)
    explained(af, builder.id, "gone")
    healed(af)
    assert builder.git("rev-parse", "HEAD") == tip
    assert builder.git("status", "--porcelain") == ""


def test_a_record_of_which_nothing_is_left_is_dropped(af: Af, spawn: Spawn, repo: Path) -> None:
    builder = spawn().stop()
    git(repo, "worktree", "remove", "--force", str(builder.worktree))
    git(repo, "branch", "-D", builder.branch)
    explained(af, builder.id, "branch")
    healed(af)
    found = traces(repo)
    assert (found.records, found.ports, found.worktrees) == (frozenset(), frozenset(), frozenset())


@pytest.mark.slow
def test_a_lost_registry_is_made_again(af: Af, spawn: Spawn, repo: Path) -> None:
    running, stopped = spawn("one"), spawn("two").stop()
    before = json.loads((repo / ".agent-farm/registry.json").read_text())["builders"]
    (repo / ".agent-farm/registry.json").unlink()
    explained(af, running.id, "without a record")
    healed(af)
    after = json.loads((repo / ".agent-farm/registry.json").read_text())["builders"]
    assert after.keys() == before.keys()
    assert after[running.id]["task_text"] == "one"
    assert running.state == "idle"
    assert stopped.worktree.is_dir()


@pytest.mark.slow
def test_a_damaged_registry_is_kept_aside_and_made_again(af: Af, spawn: Spawn, repo: Path) -> None:
    builder = spawn()
    file = repo / ".agent-farm/registry.json"
    file.write_text(file.read_text()[:200])
    assert af("status").returncode == 1
    explained(af, "registry.json is damaged")
    healed(af)
    assert builder.state == "idle"
    (aside,) = file.parent.glob("registry.json.damaged-*")
    assert len(aside.read_text()) == 200


@pytest.mark.slow
def test_one_record_that_cannot_be_read_leaves_the_others_usable(af: Af, spawn: Spawn, repo: Path) -> None:
    good, bad = spawn(), spawn()
    file = repo / ".agent-farm/registry.json"
    document = json.loads(file.read_text())
    document["builders"][bad.id]["branch"] = 7
    file.write_text(json.dumps(document))
    shown = af("status")
    assert (shown.returncode, good.id in shown.stdout) == (0, True)
    assert f"The record of builder {bad.id} cannot be read" in shown.stderr
    assert "af doctor --fix" in shown.stderr
    assert af("stop", good.id).returncode == 0
    assert json.loads(file.read_text())["builders"][bad.id]["branch"] == 7
    explained(af, f"The record of builder {bad.id} cannot be read")
    healed(af)
    assert (good.state, bad.state) == ("stopped", "idle")
    (aside,) = file.parent.glob("registry.json.damaged-*")
    assert json.loads(aside.read_text())["builders"][bad.id]["branch"] == 7


def test_a_newer_registry_is_left_as_it_is(af: Af, spawn: Spawn, repo: Path) -> None:
    spawn()
    file = repo / ".agent-farm/registry.json"
    file.write_text(file.read_text().replace('"version": 1', '"version": 2', 1))
    before = file.read_text()
    done = af("doctor", "--fix")
    assert done.returncode == 1
    assert "version 2" in done.stdout
    assert "pip install --upgrade" in done.stderr
    assert file.read_text() == before


def test_a_worktree_that_af_never_made_is_left_alone(af: Af, repo: Path) -> None:
    """Another tool may keep its worktrees in the same place: with a record, af would remove them."""
    path = repo / ".builders/spir-42"
    git(repo, "worktree", "add", "-q", "-b", "builder/spir-42", str(path))
    write_files(path, {"precious.txt": "mine"})
    said = healed(af)
    assert "that af did not make; it is left alone" in said
    assert af("prune").returncode == 0
    assert (path / "precious.txt").read_text() == "mine"
    assert traces(repo).records == frozenset()


@pytest.mark.slow
def test_a_deleted_worktree_comes_back_with_what_was_staged(af: Af, spawn: Spawn, repo: Path) -> None:
    """git still has its index, HEAD and reflog: they are not thrown away for a fresh checkout."""
    builder = spawn().stop()
    write_files(builder.worktree, {"staged.txt": "only in the index\n"})
    builder.git("add", "staged.txt")
    builder.git("switch", "-q", "--detach")
    reflog = builder.git("reflog")
    shutil.rmtree(builder.worktree)
    explained(af, builder.id, "gone", "git still has its index")
    healed_or_named = af("doctor", "--fix")
    assert "with what was staged" in healed_or_named.stdout
    assert builder.git("status", "--short") == "A  staged.txt"
    assert (builder.worktree / "staged.txt").read_text() == "only in the index\n"
    assert builder.git("reflog") == reflog


@pytest.mark.slow
def test_a_worktree_that_a_person_moved_is_named_with_the_way_back(af: Af, spawn: Spawn, repo: Path) -> None:
    builder = spawn().stop()
    elsewhere = repo.parent / "elsewhere"
    git(repo, "worktree", "move", str(builder.worktree), str(elsewhere))
    done = af("doctor", "--fix")
    assert done.returncode == 1
    assert f"{builder.branch} is checked out in {elsewhere}" in done.stdout
    hint = next(line for line in done.stderr.splitlines() if "worktree move" in line)
    subprocess.run(shlex.split(hint.removeprefix("hint: ")), check=True)
    assert af("doctor").returncode == 0
    assert builder.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_a_branch_that_is_gone_is_named(af: Af, spawn: Spawn, repo: Path) -> None:
    builder = spawn().stop()
    builder.git("switch", "-q", "--detach")
    git(repo, "branch", "-D", builder.branch)
    done = af("doctor", "--fix")
    assert done.returncode == 1
    assert f"{builder.id}: its branch {builder.branch} is gone" in done.stdout
    hint = next(line for line in done.stderr.splitlines() if "switch -c" in line)
    subprocess.run(shlex.split(hint.removeprefix("hint: ")), check=True)
    assert af("doctor").returncode == 0


@pytest.mark.slow
def test_a_worktree_whose_git_file_names_another_repository(af: Af, spawn: Spawn, repo: Path) -> None:
    builder = spawn().stop()
    (builder.worktree / ".git").write_text("gitdir: /nowhere\n")
    done = af("doctor", "--fix")
    assert done.returncode == 1
    assert builder.id in done.stdout
    assert "is not a worktree of this repository" in done.stdout
    assert "git worktree repair" in done.stderr


@pytest.mark.slow
def test_why_something_could_not_be_healed(af: Af, spawn: Spawn, repo: Path) -> None:
    """What and why, exit code 1, and no word of healing."""
    builder = spawn().stop()
    shutil.rmtree(repo / ".git/worktrees")
    shutil.rmtree(builder.worktree)
    (repo / ".git/worktrees").write_text("in the way")
    done = af("doctor", "--fix")
    assert done.returncode == 1
    failed = [line for line in done.stdout.splitlines() if line.startswith("failed")]
    assert failed, done.stdout
    assert any(": " in line for line in failed)
    assert not any(builder.id in line for line in done.stdout.splitlines() if line.startswith("healed"))


def test_a_key_of_credentials_that_is_lost_is_noticed(af: Af, repo: Path, home: Path) -> None:
    for name in ("ONE", "TWO"):
        assert af("credentials", "set", name, input="secret\n").returncode == 0
    assert "credentials" not in af("doctor").stdout
    (home / ".local/state/agent-farm/credentials.key").unlink()
    done = af("doctor")
    assert done.returncode == 1
    assert done.stdout.count("credentials.key is gone, so stored credentials cannot be read") == 1
    assert "hint: af credentials set ONE" in done.stdout + done.stderr
    assert af("credentials", "set", "ONE", input="secret\n").returncode == 0
    assert "The credential TWO was sealed with another key" in af("doctor").stdout


def test_a_database_that_is_damaged(af: Af, spawn: Spawn, repo: Path) -> None:
    spawn("--shell")
    file = repo / ".agent-farm/butler.db"
    file.write_bytes(b"this is no database, and long enough to be taken for one" * 50)
    file.chmod(0o600)
    done = af("doctor", "--fix")
    assert done.returncode == 1
    assert "butler.db is damaged" in done.stdout
    assert f"mv {file}" in done.stderr
    assert file.read_bytes().startswith(b"this is no database")


def test_a_registry_that_is_a_directory(af: Af, spawn: Spawn, repo: Path) -> None:
    builder = spawn()
    registry = repo / ".agent-farm/registry.json"
    registry.unlink()
    registry.mkdir()
    assert af("status").returncode == 1
    explained(af, "registry.json is damaged")
    healed(af)
    assert builder.state == "idle"


def test_a_lock_that_a_killed_git_left(af: Af, spawn: Spawn, repo: Path) -> None:
    builder = spawn().stop()
    for lock in (repo / ".git/index.lock", repo / ".git/worktrees" / builder.id / "index.lock"):
        lock.touch()
        done = af("doctor", "--fix")
        assert done.returncode == 1
        assert f"git left {lock} behind" in done.stdout
        assert f"hint: rm {lock}" in done.stderr
        lock.unlink()
    assert af("doctor").returncode == 0


def test_a_lock_of_all_checkouts_may_be_that_of_a_builders_git(af: Af, spawn: Spawn, repo: Path) -> None:
    """Refs and configuration are common to all; index and HEAD are not."""
    builder = spawn().stop()
    common, own = repo / ".git/packed-refs.lock", repo / ".git/index.lock"
    of_a_ref = repo / ".git/refs/heads/main.lock"
    for lock in (common, own, of_a_ref):
        lock.touch()
    working = subprocess.Popen(
        ["git", "cat-file", "--batch"], cwd=builder.worktree, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        said = af("doctor").stdout
        assert f"git left {own} behind" in said
        assert str(common) not in said
        assert str(of_a_ref) not in said
    finally:
        assert working.stdin is not None
        working.communicate()
    own.unlink()
    refused = af("prune", "--stop", "--discard-commits", builder.id)
    assert refused.returncode == 1
    assert "packed-refs.lock" in refused.stderr
    assert "hint: af doctor" in refused.stderr
    said = af("doctor").stdout
    assert f"git left {common} behind" in said
    assert f"git left {of_a_ref} behind" in said


def test_a_lock_of_a_git_that_lives_is_its_own(af: Af, repo: Path) -> None:
    """An editor may be open for a commit message: git has closed the file, and still needs it."""
    (repo / ".git/index.lock").touch()
    waiting = subprocess.Popen(
        ["git", "cat-file", "--batch"], cwd=repo, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert af("doctor").returncode == 0
    finally:
        assert waiting.stdin is not None
        waiting.communicate()
    assert af("doctor").returncode == 1


def test_a_slot_of_the_pool_that_was_not_made_to_the_end(af: Af, repo: Path) -> None:
    assert af("config", "set", "pool.size", "1").returncode == 0
    assert af("pool", "fill").returncode == 0
    (marker,) = (repo / ".builders/.pool").glob("*.ready")
    marker.unlink()
    (repo / ".git/worktrees" / marker.stem / "index.lock").touch()
    explained(af, "the pool's worktrees", marker.stem)
    healed(af)
    assert not marker.with_suffix("").exists()
    assert af("pool", "fill").returncode == 0


def test_a_directory_that_is_no_worktree_is_left_alone(af: Af, repo: Path) -> None:
    write_files(repo, {".builders/mine/notes.txt": "keep"})
    done = af("doctor", "--fix")
    assert done.returncode == 0
    assert "left alone" in done.stdout
    assert (repo / ".builders/mine/notes.txt").read_text() == "keep"


@pytest.mark.slow
def test_a_branch_left_behind(af: Af, spawn: Spawn, repo: Path) -> None:
    landed, working = spawn("one").stop(), spawn("two").stop()
    tip = working.tip
    assert af("prune", landed.id, working.id, "--discard-commits").returncode == 0
    git(repo, "branch", landed.branch)
    git(repo, "branch", working.branch, tip)
    explained(af, landed.branch)
    said = healed(af)
    assert git(repo, "branch", "--list", landed.branch) == ""
    assert git(repo, "branch", "--list", working.branch) != ""
    assert "1 commit that has not landed" in said


def test_a_branch_and_a_registration_of_another_tool_stay(af: Af, repo: Path) -> None:
    path = repo / ".builders/spir-42"
    git(repo, "worktree", "add", "-q", "-b", "builder/spir-42", str(path))
    git(repo, "branch", "builder/spir-43")
    shutil.rmtree(path)
    said = healed(af)
    assert "af did not make it" in said
    assert "builder/spir-43 belonged to no builder that af knows of" in said
    assert str(path) in git(repo, "worktree", "list")
    assert git(repo, "branch", "--list", "builder/spir-43") != ""


def test_a_session_without_a_record_is_ended(af: Af, spawn: Spawn, repo: Path) -> None:
    builder = spawn()
    registry = repo / ".agent-farm/registry.json"
    registry.write_text(json.dumps({"version": 1, "builders": {}}))
    git(repo, "worktree", "remove", "--force", str(builder.worktree))
    explained(af, builder.id, "belongs to no builder")
    healed(af)
    assert traces(repo).sessions == frozenset()


def test_run_directory_ports_locks_and_registrations_of_the_gone(af: Af, spawn: Spawn, repo: Path) -> None:
    builder = spawn().stop()
    git(repo, "merge", "-q", builder.branch)
    (repo / ".agent-farm/registry.json").write_text(json.dumps({"version": 1, "builders": {}}))
    shutil.rmtree(builder.worktree)
    (repo / ".agent-farm/locks/builder-task-0000-0000.lock").touch()
    done = af("doctor")
    for word in ("run directory", "ports", "git still lists", "lock file"):
        assert word in done.stdout
    healed(af)
    found = traces(repo)
    assert found.left(but="trash") == {}


def test_a_dead_servers_file_is_removed(af: Af, repo: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    file = repo / ".agent-farm/server.json"
    file.parent.mkdir()
    file.write_text(
        json.dumps({"version": 1, "pid": dead.pid, "port": 1, "token_file": "/x", "started_at": ""})
    )
    explained(af, "server")
    healed(af)
    assert not file.exists()


def test_ports_of_a_farm_that_is_gone_are_free_again(
    af: Af, spawn: Spawn, tmp_path: Path, home: Path
) -> None:
    spawn()
    ports = home / ".local/state/agent-farm/ports.json"
    document = json.loads(ports.read_text())
    document["farms"][str(tmp_path / "gone")] = {"task-0000-0000": [20000]}
    ports.write_text(json.dumps(document))
    document["farms"]["/unmounted/disk/farm"] = {"task-0000-0000": [20010]}
    ports.write_text(json.dumps(document))
    done = af("doctor")
    assert done.returncode == 0  # somebody else's farm is no problem of this one
    assert sum("ports are reserved for" in line for line in done.stdout.splitlines()) == 2
    healed(af)
    assert str(tmp_path / "gone") not in ports.read_text()
    assert "/unmounted/disk/farm" in ports.read_text()  # it may be there for another container


def test_a_removal_that_was_cut_short_is_carried_to_its_end(af: Af, spawn: Spawn, repo: Path) -> None:
    """As after a kill -9 between moving the worktree away and dropping the record."""
    builder = spawn().stop()
    registry = repo / ".agent-farm/registry.json"
    before = registry.read_text()
    tip = builder.tip
    assert af("prune", builder.id, "--discard-commits").returncode == 0
    registry.write_text(before)
    git(repo, "branch", builder.branch, tip)
    explained(af, builder.id, "removal was interrupted")
    healed(af)
    assert traces(repo).left(but="trash") == {}
    assert af("restore", builder.id).returncode == 0
    assert builder.tip == tip


def test_a_removal_that_cannot_end_yet_leaves_one_worktree(af: Af, spawn: Spawn, repo: Path) -> None:
    """A second one in its place would lose its branch to the removal of the first."""
    builder = spawn("--shell").stop()
    own = commit_files(builder.worktree, {"own.txt": "1"})
    write_files(builder.worktree, {"not-committed.txt": "2"})
    lock = repo / ".git/packed-refs.lock"
    lock.touch()
    cut_short = af("prune", builder.id, "--discard-commits", "--discard-changes")
    assert cut_short.returncode == 1, cut_short.stderr
    assert af("doctor", "--fix").returncode == 1
    assert not builder.worktree.exists()
    assert len(git(repo, "worktree", "list").splitlines()) == 2  # the main checkout, and the one in the trash
    lock.unlink()
    healed(af)
    assert af("restore", builder.id).returncode == 0
    assert builder.git("rev-parse", builder.branch) == own
    assert (builder.worktree / "not-committed.txt").read_text() == "2"


def test_a_branch_that_was_checked_out_since_stays(af: Af, spawn: Spawn, repo: Path, tmp_path: Path) -> None:
    builder = spawn("--shell").stop()
    lock = repo / ".git/packed-refs.lock"
    lock.touch()
    assert af("prune", builder.id).returncode == 1
    elsewhere = tmp_path / "elsewhere"
    git(repo, "worktree", "add", "-q", "--force", str(elsewhere), builder.branch)
    lock.unlink()
    healed(af)
    assert git(elsewhere, "status", "--porcelain", "--branch") == f"## {builder.branch}"


def test_a_builder_that_wrote_into_the_main_checkout_is_named(af: Af, spawn: Spawn, repo: Path) -> None:
    builder = spawn(f"[[write:{repo}/escaped.txt]]", "--permissions", "all")
    assert (repo / "escaped.txt").exists()
    done = af("doctor")
    assert done.returncode == 1
    assert f"{builder.id} wrote {repo}/escaped.txt" in done.stdout


def test_json(af: Af, repo: Path) -> None:
    (repo / ".git/index.lock").touch()
    done = af("doctor", "--json")
    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert document["problems"] == 1
    assert document["version"] == 1


@pytest.mark.parametrize("where", ["temporary", "launch.json"])
def test_keys_that_a_killed_start_left(
    af: Af, spawn: Spawn, repo: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Killed between writing launch.json and its launcher reading it: the values are nobody's to keep."""
    monkeypatch.setenv("MY_KEY", "sk-live-SECRET-123")
    builder = spawn().stop()
    run = repo / ".agent-farm/runs" / builder.id
    document = json.loads((run / "launch.json").read_text())
    text = json.dumps({**document, "env": {"MY_KEY": "sk-live-SECRET-123"}})
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = run / ("launch.json" if where == "launch.json" else f".launch.json.{dead.pid}.tmp")
    for heal in (("doctor", "--fix"), ("prune", builder.id, "--discard-commits")):
        left.write_text(text)
        left.chmod(0o600)
        assert af(*heal).returncode == 0
        kept = [path for path in (repo / ".agent-farm").rglob("*") if path.is_file()]
        assert not [path for path in kept if b"sk-live-SECRET-123" in path.read_bytes()]


@pytest.mark.slow
def test_a_git_that_never_answers_holds_it_up_for_a_moment(af: Af, repo: Path, tmp_path: Path) -> None:
    done = af("doctor", env=shims.make(tmp_path / "shim", "git", 1, "  exec sleep 600"))
    assert done.returncode == 124
    assert "git version took longer than 10 s" in done.stderr


def test_a_tmux_server_that_is_too_old_is_found(af: Af, spawn: Spawn, repo: Path, tmp_path: Path) -> None:
    """Begun by an old tmux that was replaced since; a spawn is refused and leaves nothing."""
    spawn("--shell")
    program = tmp_path / "old/tmux"
    program.parent.mkdir()
    program.write_text(f'#!/bin/bash\nexec {shutil.which("tmux")} "${{@//\\#{{version\\}}/3.2a}}"\n')
    program.chmod(0o755)
    env = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    assert "The server is tmux 3.2a, which is older than 3.3." in af("doctor", env=env).stdout
    before = traces(repo).left()
    refused = af("spawn", "--shell", "--runtime", "demo", env=env)
    assert refused.returncode == 1, refused
    assert "The server is tmux 3.2a" in refused.stderr
    assert traces(repo).left() == before
