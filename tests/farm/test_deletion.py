"""What was renamed is deleted afterwards; if it is much, by one process in the background."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_farm.errors import AgentFarmError
from agent_farm.farm import deletion, trash
from agent_farm.farm.deletion import delete_trees
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.farm.guarded_removal import Waived, prune_several
from tests.conftest import Af
from tests.farm import shims
from tests.farm.conftest import Spawned
from tests.farm.traces import traces
from tests.gitrepo import commit_files, git, write_files

Spawn = Callable[..., Spawned]
FILES = 900  # of each builder: less than what is deleted at once, but not of all three


def deletions(monkeypatch: pytest.MonkeyPatch, *, killed: bool = False) -> list[subprocess.Popen[bytes]]:
    """The processes that delete in the background, from here on; `killed` ones end before they have begun."""
    started, real = list[subprocess.Popen[bytes]](), subprocess.Popen

    def start(argv: list[str], **options: object) -> object:
        deletes = deletion.__file__ in argv
        process = real(["true"] if deletes and killed else argv, **options)  # type: ignore[call-overload]
        if deletes:
            started.append(process)
        return process

    monkeypatch.setattr(subprocess, "Popen", start)
    return started


@pytest.fixture
def three(spawn: Spawn, repo: Path) -> list[Spawned]:
    """Landed and stopped, with what `npm install` makes."""
    commit_files(repo, {".gitignore": "node_modules/\n"})
    builders = [spawn("--shell").stop() for _ in range(3)]
    for builder in builders:
        names = (f"node_modules/{number % 7}/{number}.js" for number in range(FILES))
        write_files(builder.worktree, {"node_modules/.package-lock.json": "{}", **dict.fromkeys(names, "x")})
    return builders


def prune(repo: Path, builders: list[Spawned]) -> None:
    found = dict(prune_several(open_farm(repo), [one.id for one in builders], Waived()))
    assert not [one for one in found.values() if isinstance(one, AgentFarmError)], found


def doomed(repo: Path) -> Iterator[Path]:
    return (repo / ".agent-farm").rglob(".*.deleting")


def test_many_are_deleted_by_one_process_in_the_background(
    three: list[Spawned], repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = deletions(monkeypatch)
    prune(repo, three)
    (process,) = started
    assert process.wait(120) == 0
    assert not list(doomed(repo))


def test_a_deletion_that_was_killed_is_completed_by_the_next_expire(
    three: list[Spawned], af: Af, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        started = deletions(patched, killed=True)
        prune(repo, three)
        assert len(list(doomed(repo))) == 1  # the other two were few enough to be deleted at once
        patched.setattr(deletion, "_MANY_ENTRIES", 10)
        trash.expire(open_farm(repo), 0)
        assert [process.wait(120) for process in started] == [0, 0]
    assert len(list((repo / ".agent-farm/trash").glob(".*.deleting"))) == 3
    assert af("prune", "--expire", "0").returncode == 0
    assert traces(repo).trash == frozenset()


def test_a_link_in_place_of_a_tree_is_deleted_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere/inner").mkdir(parents=True)
    (tmp_path / "elsewhere/inner").chmod(0o755)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    assert delete_trees([link]) == []
    assert not os.path.lexists(link)
    assert stat.S_IMODE((tmp_path / "elsewhere/inner").stat().st_mode) == 0o755


def test_only_whole_paths_are_deleted(tmp_path: Path) -> None:
    """An `af` that is killed while it tells them leaves part of one, which may be a directory above."""
    write_files(tmp_path, {"whole/a": "x", "part/of/one": "x"})
    told = os.fsencode(tmp_path / "whole") + b"\0" + os.fsencode(tmp_path / "part")
    subprocess.run([sys.executable, "-I", "-S", deletion.__file__], input=told, check=True)
    assert not (tmp_path / "whole").exists()
    assert (tmp_path / "part/of/one").exists()


def make_kept(farm: Farm, count: int) -> None:
    """So many removals with a ref each, from one that is real."""
    (one,) = trash.list_kept(farm)
    commit = farm.repository.head(farm.root).commit
    for number in range(count):
        epoch = one.epoch - 1 - number
        directory = one.directory.with_name(f"{one.record.id}-{epoch}")
        other = replace(one, epoch=epoch, directory=directory)
        other.worktree.mkdir(parents=True)
        git(farm.root, "update-ref", other.ref, commit)
        trash.store_kept(other)


def test_expire_reads_each_removal_once_and_asks_git_twice(
    spawn: Spawn, af: Af, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = spawn("--shell").stop()
    assert af("prune", builder.id).returncode == 0
    farm = open_farm(repo)
    make_kept(farm, 20)
    loaded = list[Path]()

    def load(directory: Path, real: Callable[[Path], object] = trash.load_kept) -> object:
        loaded.append(directory)
        return real(directory)

    for name, value in shims.make(tmp_path / "shim", "git", 0, ":").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(trash, "load_kept", load)
    found = trash.expire(farm, 0)
    assert (len(found.gone), found.left, found.busy) == (21, (), ())
    assert len(loaded) == 2 * 21  # for the list, and again under its lock
    assert len(shims.calls(tmp_path / "shim", "git")) == 2
    assert git(repo, "for-each-ref", "refs/agent-farm") == ""


def test_one_ref_that_git_cannot_delete_holds_up_no_other(spawn: Spawn, af: Af, repo: Path) -> None:
    builder = spawn("--shell").stop()
    assert af("prune", builder.id).returncode == 0
    farm = open_farm(repo)
    make_kept(farm, 3)
    first = git(repo, "for-each-ref", "--format=%(refname)", "refs/agent-farm/salvage").split()[0]
    lock = repo / ".git" / f"{first}.lock"
    lock.touch()
    done = af("prune", "--expire", "0")
    assert done.returncode == 1
    assert f"{first}.lock" in done.stderr
    assert done.stdout.count("deleted for good") == 4
    assert git(repo, "for-each-ref", "--format=%(refname)", "refs/agent-farm/salvage") == first
    lock.unlink()
    assert af("prune", "--expire", "0").returncode == 0
    assert git(repo, "for-each-ref", "refs/agent-farm") == ""
