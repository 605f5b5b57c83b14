"""Somebody switches branches in the main checkout while work lands there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.conftest import Spawned
from tests.gitrepo import commit_files, git
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


def test_a_switch_that_has_written_the_files_gets_to_its_head(
    spawn: Callable[..., Spawned], af: Af, repo: Path
) -> None:
    """git lets go of the index before it changes HEAD: a landing between the two would mix two branches."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    git(repo, "branch", "other")
    commit_files(repo, {"on-main": "1\n"})
    builder = spawn("--shell").stop()
    commit_files(builder.worktree, {"work": "1\n"})
    late = ("-P", f"{repo}/.git/HEAD.lock", "-e", "trace=openat", "-e", "inject=openat:delay_enter=2000000")
    switch = subprocess.Popen(
        [strace, "-f", "-qq", "-o", os.devnull, *late, "git", "switch", "-q", "other"], cwd=repo
    )
    is_written = lambda: not (repo / "on-main").exists() and not (repo / ".git/index.lock").exists()  # noqa: E731
    wait_until(is_written, what="the index of the other branch")
    done = af("merge", builder.id, "--here")
    assert switch.wait(timeout=120) == 0
    assert done.returncode == 0, done.stderr
    assert "landed on other" in done.stdout
    assert git(repo, "status", "--porcelain", "--branch") == "## other"
    assert git(repo, "log", "--format=%s", "main", "-1") == "change"
