"""Whatever `af` does, no git finds its directory in a builder's worktree by itself: it is told."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.gitrepo import git, write_files

pytestmark = pytest.mark.slow

Loose = Callable[[], list[str]]

# The demo agent's own git is its own affair; it runs with AF_RUN, and `af` without.
_SCRIPT = """#!/bin/sh
case "$PWD/$AF_RUN $1" in
*/.builders/*/" --git-dir="*) ;;
*/.builders/*/" "*) echo "$PWD: $*" >> '{log}' ;;
esac
exec '{real}' "$@"
"""


@pytest.fixture
def loose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loose:
    """The gits that were started in a worktree without being told their directory."""
    log, shim = tmp_path / "loose", tmp_path / "shim/git"
    shim.parent.mkdir()
    shim.write_text(_SCRIPT.format(log=log, real=shutil.which("git")))
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    return lambda: log.read_text().splitlines() if log.exists() else []


def test_it_is_seen(repo: Path, loose: Loose) -> None:
    git(repo, "worktree", "add", "-q", ".builders/x")
    git(repo / ".builders/x", "status")
    assert loose() == [f"{repo}/.builders/x: status"]


def test_a_builders_life(repo: Path, af: Af, loose: Loose) -> None:
    def run(*words: str, cwd: Path | None = None) -> str:
        done = af(*words, cwd=cwd)
        assert done.returncode == 0, done.stderr
        assert loose() == [], words
        return done.stdout.strip()

    def spawn(task: str, *words: str, cwd: Path | None = None) -> str:
        id: str = json.loads(run("spawn", "--json", "--runtime", "demo", task, *words, cwd=cwd))["builder"][
            "id"
        ]
        run("wait", id, "--timeout", "300")
        return id

    write_files(repo, {".gitignore": ".env\n", ".env": "KEY=1\n"})
    git(repo, "add", ".gitignore")
    git(repo, "commit", "-q", "-m", "ignore")
    run("config", "set", "worktree.copy", '[".env"]')
    run("config", "set", "pool.size", "1")
    one = spawn("one")
    run("pool", "fill")
    two = spawn("two")
    inside = repo / ".builders" / one
    three = spawn("three", cwd=inside)
    run("status", "--fresh", cwd=inside)
    for words in (("diff", one), ("conflicts",), ("merge", one), ("doctor",), ("merge", two)):
        run(*words)
    write_files(repo / ".builders" / three, {"README.md": "changed\n", "new.txt": "new\n"})
    run("diff", three)
    run("stop", "--all")
    run("resume", one)
    run("prune", one, "--stop")
    run("restore", one)
    run("prune", three, "--discard-changes", "--discard-commits")
    run("restore", three)
    run("prune")
    shutil.rmtree(repo / ".builders" / three)
    run("doctor", "--fix")


def test_a_builder_that_is_given_uncommitted_work(repo: Path, af: Af, loose: Loose) -> None:
    assert af("config", "set", "worktree.uncommitted", "true").returncode == 0
    write_files(repo, {"README.md": "changed\n", "new.txt": "new\n"})
    done = json.loads(af("spawn", "--json", "--shell", "--runtime", "demo").stdout)
    inside = Path(done["builder"]["worktree"])
    assert (inside / "new.txt").read_text() == "new\n"
    write_files(inside, {"more.txt": "more\n"})
    done = json.loads(af("spawn", "--json", "--shell", "--runtime", "demo", cwd=inside).stdout)
    assert (Path(done["builder"]["worktree"]) / "more.txt").read_text() == "more\n"
    assert loose() == []
