"""Design section 8, case by case: refused or salvaged as stated, and restored byte for byte."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_farm.farm.deletion import delete_tree
from agent_farm.git.keeping import rename
from tests.conftest import Af
from tests.farm.belongings import files_of
from tests.farm.conftest import Spawned, status_of
from tests.farm.traces import traces
from tests.gitrepo import commit_files, git, make_repo, write_files
from tests.waiting import wait_until

Spawn = Callable[..., Spawned]


def refused(builder: Spawned, *flags: str) -> str:
    """The evidence of a refusal that changed nothing."""
    before = (files_of(builder.worktree), git(builder.repo, "for-each-ref"))
    done = builder.af("prune", builder.id, *flags)
    assert done.returncode == 4, done.stdout + done.stderr
    assert (files_of(builder.worktree), git(builder.repo, "for-each-ref")) == before
    return done.stderr


def prune(builder: Spawned, *flags: str) -> str:
    done = builder.af("prune", builder.id, *flags)
    assert done.returncode == 0, done.stderr
    found = traces(builder.repo)
    assert builder.id not in found.records | found.worktrees | found.registered | found.ports | found.sessions
    assert builder.id not in found.runs | found.locks
    return done.stdout + done.stderr


def restore(builder: Spawned, *more: str) -> None:
    done = builder.af("restore", builder.id, *more)
    assert done.returncode == 0, done.stderr
    assert builder.state == "stopped"
    assert git(builder.worktree, "branch", "--show-current") == builder.branch


def land(builder: Spawned) -> None:
    git(builder.repo, "merge", "-q", "--no-edit", builder.branch)


def test_without_ids_takes_only_what_is_finished_and_has_landed(af: Af, spawn: Spawn, repo: Path) -> None:
    landed, unlanded, running = spawn("one").stop(), spawn("two").stop(), spawn("three")
    land(landed)
    land(running)

    done = af("prune")

    assert done.returncode == 0
    assert traces(repo).records == {unlanded.id, running.id}
    assert f"{landed.id} removed" in done.stdout
    assert "1 commit not landed" in done.stderr


def test_a_running_builder_is_refused(spawn: Spawn) -> None:
    builder = spawn()
    land(builder)
    assert f"af stop {builder.id}" in refused(builder, "--discard-changes", "--discard-commits")


def test_a_running_builder_is_stopped_and_removed(spawn: Spawn, repo: Path) -> None:
    builder = spawn()
    land(builder)
    assert f"{builder.id} removed" in prune(builder, "--stop")
    assert not traces(repo).processes
    restore(builder)
    assert "stopped: by af prune --stop\n" in builder.af("logs", builder.id).stdout


def test_a_stopped_one_is_removed_with_stop_as_without(spawn: Spawn) -> None:
    builder = spawn().stop()
    land(builder)
    prune(builder, "--stop")


@pytest.mark.parametrize("dirty", [True, False])
def test_a_refused_builder_is_not_stopped(spawn: Spawn, repo: Path, dirty: bool) -> None:
    builder = spawn()
    if dirty:
        land(builder)
        write_files(builder.worktree, {"untracked.txt": "x"})
    before = builder.state, traces(repo).processes, traces(repo).sessions
    assert ("untracked.txt" if dirty else "Demo work") in refused(builder, "--stop")
    assert (builder.state, traces(repo).processes, traces(repo).sessions) == before
    assert builder.state == "idle"
    prune(builder, "--stop", "--discard-changes", "--discard-commits")


def test_a_dry_run_stops_nothing(spawn: Spawn, af: Af) -> None:
    builder = spawn()
    land(builder)
    done = af("prune", "--stop", "--dry-run", builder.id)
    assert (done.returncode, done.stdout) == (0, f"{builder.id} would be removed\n")
    assert builder.state == "idle"


def test_what_is_written_while_it_is_stopped_keeps_the_builder(spawn: Spawn, tmp_path: Path) -> None:
    """It is looked at once more when nothing can write any more."""
    builder = spawn("--shell")
    builder.af("send", builder.id, "[[exit:0]]")
    wait_until(lambda: builder.state == "exited", what="the runtime to end")
    ready = tmp_path / "ready"
    program = f"trap 'touch late.txt; exit' HUP TERM; touch {ready}; while :; do read -t 1; done"
    pane = f"={status_of(builder.af, builder.id)['session']}:"
    subprocess.run(["tmux", "send-keys", "-t", pane, f"bash -c {shlex.quote(program)}", "Enter"], check=True)
    wait_until(ready.exists, what="the program in its shell")

    done = builder.af("prune", "--stop", builder.id)

    assert done.returncode == 4, done
    assert "late.txt" in done.stderr
    assert (builder.worktree / "late.txt").exists()


def test_an_id_has_to_be_whole(af: Af, spawn: Spawn) -> None:
    builder = spawn().stop()
    land(builder)
    done = af("prune", builder.id[:-1])
    assert done.returncode == 2
    assert builder.worktree.is_dir()


def test_dirty_and_untracked_files_are_waived_and_come_back(spawn: Spawn) -> None:
    builder = spawn().stop()
    land(builder)
    write_files(
        builder.worktree, {"README.md": "changed\r\n", "new/deep.txt": "untracked", "staged": "staged"}
    )
    (builder.worktree / "binary").write_bytes(bytes(range(256)))
    os.symlink("nowhere", builder.worktree / "link")
    (builder.worktree / "run.sh").write_text("#!/bin/sh\n")
    (builder.worktree / "run.sh").chmod(0o755)
    builder.git("add", "staged")
    builder.git("rm", "-q", "--cached", "README.md")
    before, status = files_of(builder.worktree), builder.git("status", "--porcelain")

    evidence = refused(builder, "--discard-commits")
    assert "new/deep.txt" in evidence
    assert "README.md" in evidence
    prune(builder, "--discard-changes")
    restore(builder)

    assert files_of(builder.worktree) == before
    assert builder.git("status", "--porcelain") == status


def test_commits_are_waived_and_come_back(spawn: Spawn) -> None:
    builder = spawn().stop()
    tip = builder.tip
    assert "Demo work" in refused(builder, "--discard-changes")
    prune(builder, "--discard-commits")
    assert git(builder.repo, "branch", "--list", builder.branch) == ""
    restore(builder)
    assert builder.tip == tip


def test_one_flag_waives_one_thing(spawn: Spawn) -> None:
    builder = spawn().stop()
    write_files(builder.worktree, {"untracked": "x"})
    assert "--discard-changes" in refused(builder, "--discard-commits")
    assert "--discard-commits" in refused(builder, "--discard-changes")
    prune(builder, "--discard-changes", "--discard-commits")


def test_squash_merged_work_has_landed(spawn: Spawn) -> None:
    builder = spawn().stop()
    commit_files(builder.worktree, {"second.txt": "2"})
    git(builder.repo, "merge", "-q", "--squash", builder.branch)
    git(builder.repo, "commit", "-q", "-m", "all of it")
    tip = builder.tip
    prune(builder)
    restore(builder)
    assert builder.tip == tip


def test_rebased_and_merged_work_has_landed(spawn: Spawn) -> None:
    builder = spawn().stop()
    commit_files(builder.repo, {"other.txt": "1"})
    git(builder.repo, "cherry-pick", builder.branch)
    prune(builder)


def test_work_on_a_remote_tracking_branch_has_landed(spawn: Spawn, tmp_path: Path) -> None:
    builder = spawn().stop()
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    builder.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    refused(builder)
    builder.git("push", "-q", "origin", builder.branch)
    prune(builder)


def test_partly_merged_work_has_not_landed(spawn: Spawn) -> None:
    builder = spawn().stop()
    land(builder)
    commit_files(builder.worktree, {"late.txt": "late"}, "the late one")
    evidence = refused(builder)
    assert "the late one" in evidence
    assert "Demo work" not in evidence


def test_ignored_files_that_were_edited_are_kept_and_come_back(spawn: Spawn, repo: Path) -> None:
    commit_files(repo, {".gitignore": ".env\n.env.local\nnode_modules/\nnotes/\n"})
    write_files(repo, {".env": "SHARED=1\n"})
    builder = spawn("--shell").stop()
    write_files(builder.worktree, {".env": "SHARED=1\n", ".env.local": "MINE=1\n", "notes/a.md": "thoughts"})
    write_files(builder.worktree, {"node_modules/.package-lock.json": "{}", "node_modules/x/index.js": "x"})

    said = prune(builder)

    assert "kept in the trash: .env, .env.local, notes\n" in said
    assert "deleted (can be regenerated): node_modules\n" in said
    restore(builder)
    assert (builder.worktree / ".env.local").read_text() == "MINE=1\n"
    assert (builder.worktree / "notes/a.md").read_text() == "thoughts"
    assert not (builder.worktree / "node_modules").exists()


OUTPUTS = ["build", "dist", "target", "coverage", ".cache", ".hypothesis", ".terraform", "pkg/a/build"]
BY_HAND = ["node_modules", ".venv", "venv", "__pycache__", ".mypy_cache"]


def test_a_file_in_an_ignored_directory_comes_back_whatever_its_name(spawn: Spawn, repo: Path) -> None:
    """A tool's name does not make it a tool's: only the mark a tool leaves in it does."""
    places = [*OUTPUTS, *BY_HAND]
    ignored = "".join(f"{place.rpartition('/')[2]}/\n" for place in places)
    commit_files(repo, {".gitignore": ignored, "pkg/a/code.py": "x = 1\n"})
    builder = spawn("--shell").stop()
    for place in places:
        files = {f"{place}/notes.md": "by hand\n", f"{place}/deep/er.md": "by hand\n"}
        write_files(builder.worktree, files)
    before = files_of(builder.worktree)

    done = builder.af("prune", builder.id, "--json")

    (removed,) = json.loads(done.stdout)["removed"]
    assert (set(removed["kept"]), removed["left_out"]) == (set(places), [])
    restore(builder)
    assert files_of(builder.worktree) == before


def test_a_file_named_like_a_tools_directory_comes_back(spawn: Spawn, repo: Path) -> None:
    commit_files(repo, {".gitignore": "coverage\nnode_modules\n"})
    builder = spawn("--shell").stop()
    write_files(builder.worktree, {"coverage": "by hand\n", "node_modules": "by hand\n"})
    prune(builder)
    restore(builder)
    assert (builder.worktree / "coverage").read_text() == "by hand\n"
    assert (builder.worktree / "node_modules").read_text() == "by hand\n"


def test_what_tools_made_is_left_out_and_named(spawn: Spawn, repo: Path) -> None:
    commit_files(repo, {".gitignore": ".venv/\n__pycache__/\n.mypy_cache/\nnode_modules\n", "a/b/c.py": ""})
    builder = spawn("--shell").stop()
    made = {".venv/pyvenv.cfg": "", "a/__pycache__/x.pyc": "", "a/b/__pycache__/x.pyc": ""}
    write_files(
        builder.worktree, {**made, ".mypy_cache/CACHEDIR.TAG": "", "node_modules/.yarn-integrity": ""}
    )

    done = builder.af("prune", builder.id, "--json")

    (removed,) = json.loads(done.stdout)["removed"]
    assert removed["kept"] == []
    tools = {".venv", "a/__pycache__", "a/b/__pycache__", ".mypy_cache", "node_modules"}
    assert set(removed["left_out"]) == tools
    restore(builder)
    assert not any((builder.worktree / path).exists() for path in tools)
    write_files(builder.worktree, made)
    assert "deleted (can be regenerated): .venv, __pycache__ (in 2 places)\n" in prune(builder)


def test_a_large_directory_is_renamed_and_not_read(spawn: Spawn, repo: Path) -> None:
    """Its files are the same ones afterwards, whatever the main checkout has under that name."""
    commit_files(repo, {".gitignore": "target/\n"})
    builder = spawn("--shell").stop()
    for place in (repo, builder.worktree):
        write_files(place, {f"target/{number % 7}/{number}.o": "x" for number in range(2100)})
    before = (builder.worktree / "target/3/3.o").stat().st_ino
    assert "kept in the trash: target\n" in prune(builder)
    restore(builder)
    assert (builder.worktree / "target/3/3.o").stat().st_ino == before


def test_expired_outputs_are_deleted(spawn: Spawn, af: Af, repo: Path) -> None:
    commit_files(repo, {".gitignore": "build/\n"})
    builder = spawn("--shell").stop()
    write_files(builder.worktree, {"build/notes.md": "by hand\n"})
    prune(builder)
    assert af("prune", "--expire", "0").returncode == 0
    assert traces(repo).trash == frozenset()


@pytest.fixture
def readonly() -> Iterator[Path]:
    """`mod` below it may not be written, nor may what is in it; the test is not root, whom nothing stops."""
    place = Path(tempfile.mkdtemp())  # outside pytest's own, which only its user may enter
    user, other = os.geteuid(), os.geteuid() or 65534
    write_files(place, {"mod/a/go.mod": "x", "mod/b/go.mod": "x", "outside/file": "x"})
    os.symlink(place / "outside", place / "mod/link")
    for directory, _, _ in os.walk(place, topdown=False):
        os.chown(directory, other, -1)
        Path(directory).chmod(0o555 if "mod" in directory else 0o755)
    os.seteuid(other)
    yield place
    os.seteuid(user)
    shutil.rmtree(place, ignore_errors=True)


def test_what_may_not_be_written_is_deleted_too(readonly: Path) -> None:
    delete_tree(readonly / "mod")
    assert [path.name for path in readonly.iterdir()] == ["outside"]
    assert (readonly / "outside").stat().st_mode & 0o777 == 0o755
    assert (readonly / "outside/file").exists()


def test_what_may_not_be_written_is_moved_as_it_is(readonly: Path) -> None:
    rename(readonly / "mod", readonly / "outside/mod")
    assert (readonly / "outside/mod").stat().st_mode & 0o777 == 0o555
    assert (readonly / "outside/mod/a/go.mod").read_text() == "x"


def test_a_detached_head_with_commits_is_refused(spawn: Spawn) -> None:
    builder = spawn("--shell").stop()
    builder.git("checkout", "-q", "--detach")
    commit_files(builder.worktree, {"lonely.txt": "1"}, "lonely")
    assert "detached" in refused(builder, "--discard-changes", "--discard-commits")


def test_a_rebase_in_progress_is_refused(spawn: Spawn) -> None:
    builder = spawn("--shell").stop()
    commit_files(builder.worktree, {"README.md": "mine\n"})
    commit_files(builder.repo, {"README.md": "theirs\n"})
    git(builder.worktree, "rebase", "main", check=False)
    assert "rebase is in progress" in refused(builder, "--discard-changes", "--discard-commits")


def test_a_locked_worktree_is_refused(spawn: Spawn) -> None:
    builder = spawn("--shell").stop()
    git(builder.repo, "worktree", "lock", "--reason", "on a USB stick", str(builder.worktree))
    evidence = refused(builder, "--discard-changes", "--discard-commits")
    assert "on a USB stick" in evidence
    assert "git worktree unlock" in evidence


def test_another_branch_checked_out_is_refused(spawn: Spawn) -> None:
    builder = spawn("--shell").stop()
    builder.git("switch", "-q", "-c", "elsewhere")
    assert "elsewhere" in refused(builder, "--discard-changes", "--discard-commits")


def test_a_nested_repository_is_moved_whole(spawn: Spawn) -> None:
    builder = spawn("--shell").stop()
    nested = make_repo(builder.worktree / "vendor/lib", {"code.c": "int x;\n"})
    tip = git(nested, "rev-parse", "HEAD")
    write_files(nested, {"uncommitted.c": "int y;\n"})
    refused(builder)
    assert "kept in the trash: vendor/lib\n" in prune(builder, "--discard-changes")
    restore(builder)
    assert git(nested, "rev-parse", "HEAD") == tip
    assert (nested / "uncommitted.c").read_text() == "int y;\n"


def test_local_commits_of_a_submodule_survive(spawn: Spawn, repo: Path, tmp_path: Path) -> None:
    library = make_repo(tmp_path / "library")
    git(repo, "submodule", "add", "-q", str(library), "lib")
    git(repo, "commit", "-q", "-m", "submodule")
    builder = spawn("--shell").stop()
    builder.git("submodule", "update", "--init", "-q")
    local = commit_files(builder.worktree / "lib", {"local.c": "int z;\n"})
    refused(builder)
    write_files(builder.worktree / "lib", {"unsaved.c": "int w;\n"})
    before, status = files_of(builder.worktree), builder.git("status", "--porcelain")
    prune(builder, "--discard-changes")
    restore(builder)
    assert files_of(builder.worktree) == before
    assert builder.git("status", "--porcelain") == status
    assert git(builder.worktree / "lib", "rev-parse", "HEAD") == local


def test_the_same_spec_can_be_pruned_twice(spawn: Spawn, af: Af, repo: Path) -> None:
    commit_files(repo, {"codev/specs/0009-click.md": "# Click\n"})
    first = spawn("--project", "9").stop()
    write_files(first.worktree, {"note": "first"})
    prune(first, "--discard-changes", "--discard-commits")
    second = spawn("--project", "9").stop()
    write_files(second.worktree, {"note": "second"})
    prune(second, "--discard-changes", "--discard-commits")

    kept = json.loads(af("restore", "--list", "--json").stdout)["removed"]
    assert [one["id"] for one in kept] == ["0009", "0009"]
    restore(first, "--at", str(kept[1]["epoch"]))
    assert (first.worktree / "note").read_text() == "first"
    assert af("restore", "0009").returncode == 2


def test_one_of_the_same_name_made_within_a_second_is_another_builder(af: Af, repo: Path) -> None:
    """A removal on record is not taken up again because of the next builder of that name."""
    for _ in range(4):
        done = af("spawn", "--runtime", "demo", "--shell", "--name", "brief")
        assert done.returncode == 0, done.stderr
        done = af("prune", "brief", "--stop", "--discard-commits")
        assert done.returncode == 0, done.stderr
    kept = json.loads(af("restore", "--list", "--json").stdout)["removed"]
    assert [one["id"] for one in kept] == ["brief"] * 4


def test_a_record_names_no_other_worktree(spawn: Spawn, repo: Path, tmp_path: Path) -> None:
    builder = spawn("--shell").stop()
    other = make_repo(tmp_path / "other")
    git(other, "worktree", "add", "-q", str(tmp_path / "theirs"))
    registry = repo / ".agent-farm/registry.json"
    document = json.loads(registry.read_text())
    document["builders"][builder.id]["worktree"] = str(tmp_path / "theirs")
    registry.write_text(json.dumps(document))

    done = builder.af("prune", builder.id, "--discard-changes", "--discard-commits")

    assert done.returncode == 0, done
    assert not builder.worktree.exists()
    assert (tmp_path / "theirs/README.md").exists()


def test_a_worktree_put_there_by_another_repository_is_refused(spawn: Spawn, tmp_path: Path) -> None:
    builder = spawn("--shell").stop()
    other = make_repo(tmp_path / "other")
    git(builder.repo, "worktree", "remove", "--force", str(builder.worktree))
    git(other, "worktree", "add", "-q", "-b", builder.branch, str(builder.worktree))
    refused(builder, "--discard-changes", "--discard-commits")


def test_the_users_own_branch_stays(af: Af, spawn: Spawn, repo: Path) -> None:
    git(repo, "branch", "feature")
    builder = spawn("--branch", "feature", "--shell").stop()
    prune(builder)
    assert git(repo, "branch", "--list", "feature") != ""


def test_expire_deletes_for_good(spawn: Spawn, af: Af, repo: Path) -> None:
    builder = spawn().stop()
    prune(builder, "--discard-commits")
    assert "Nothing to delete" in af("prune", "--expire", "1h").stderr
    assert af("restore", "--list").stdout != ""
    assert af("prune", "--expire", "0").returncode == 0
    assert af("restore", builder.id).returncode == 1
    assert git(repo, "for-each-ref", "refs/agent-farm") == ""
    assert traces(repo).trash == frozenset()


def test_a_restored_builder_goes_on_with_its_conversation(spawn: Spawn, af: Af) -> None:
    builder = spawn().stop()
    prune(builder, "--discard-commits")
    restore(builder)
    assert af("resume", builder.id).returncode == 0
    assert af("wait", builder.id, "--timeout", "300").returncode == 0
    assert "resumed conversation" in af("capture", builder.id).stdout


@pytest.mark.parametrize("age", ["soon", "-1d", "3y", ""])
def test_an_age_that_is_none_is_refused(af: Af, age: str) -> None:
    assert af("prune", f"--expire={age}").returncode == 2
