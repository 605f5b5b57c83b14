"""A farm that is moved or copied while one of its builders is on its way, or before it has followed whole."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.conftest import Spawned
from tests.farm.stopping import killed
from tests.farm.test_home import ports, unfinished
from tests.gitrepo import git

pytestmark = pytest.mark.slow

Spawn = Callable[..., Spawned]
DISCARD = ("--discard-changes", "--discard-commits")
# The worktree has its new place, and git has not been told.
RENAMED = ".gitdir."


def moved(repo: Path, name: str) -> Path:
    return repo.rename(repo.parent / name)


def copied(repo: Path, name: str) -> Path:
    return Path(shutil.copytree(repo, repo.parent / name, symlinks=True))


def require_whole(af: Af, root: Path, id: str, before: str) -> None:
    """The doctor has nothing to say of it, and git finds what it kept about it."""
    healed = af("doctor", "--fix", cwd=root)
    assert id not in af("doctor", cwd=root).stdout, healed
    worktree = root / ".builders" / id
    assert git(worktree, "rev-parse", "--git-dir") == os.fspath(root / ".git/worktrees" / id)
    assert git(worktree, "status", "--short") == before


@pytest.mark.parametrize("change", [moved, copied])
def test_a_removal_that_was_cut_short_is_undone_elsewhere(
    spawn: Spawn, af: Af, repo: Path, change: Callable[[Path, str], Path]
) -> None:
    builder = spawn().stop()
    before = unfinished(builder)
    done = killed(repo, RENAMED, "prune", builder.id, *DISCARD)
    assert done.returncode == -signal.SIGKILL, done
    require_whole(af, change(repo, "elsewhere"), builder.id, before)


@pytest.mark.parametrize("change", [moved, copied])
def test_a_restore_that_was_cut_short_is_finished_elsewhere(
    spawn: Spawn, af: Af, repo: Path, change: Callable[[Path, str], Path]
) -> None:
    builder = spawn().stop()
    before = unfinished(builder)
    assert af("prune", builder.id, *DISCARD).returncode == 0
    done = killed(repo, RENAMED, "restore", builder.id)
    assert done.returncode == -signal.SIGKILL, done
    require_whole(af, change(repo, "elsewhere"), builder.id, before)


def test_a_worktree_inside_one_that_is_on_its_way_comes_along(spawn: Spawn, af: Af, repo: Path) -> None:
    builder = spawn().stop()
    builder.git("worktree", "add", "-q", "-b", "inner", "inner")
    before = builder.git("status", "--short")
    done = killed(repo, RENAMED, "prune", builder.id, *DISCARD)
    assert done.returncode == -signal.SIGKILL, done
    root = moved(repo, "elsewhere")
    require_whole(af, root, builder.id, before)
    inner = root / ".builders" / builder.id / "inner"
    assert git(inner, "rev-parse", "--git-dir") == os.fspath(root / ".git/worktrees/inner")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", ["moved on", "moved back", "copied"])
def test_a_farm_that_moves_on_before_it_has_followed(spawn: Spawn, af: Af, repo: Path, way: str) -> None:
    """Killed at each step of following, and moved again: to a third place, or back to the first."""
    builders = [spawn().stop(), spawn().stop()]
    before = {builder.id: unfinished(builder) for builder in builders}
    home = repo
    for step in range(1, 200):
        second = copied(repo, f"second-{step}") if way == "copied" else moved(home, f"second-{step}")
        done = killed(second, step, "path", builders[0].id)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done
        home = moved(second, home.name if way == "moved back" else f"third-{step}")
        for id, text in before.items():
            require_whole(af, home, id, text)
        if way == "copied":
            shutil.rmtree(home)
    assert step > 10
    assert set(ports()[os.fspath(second)]) == set(before)
