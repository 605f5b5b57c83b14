"""What a builder on another machine has is at home soon: files, index, journal, conversation."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from tests.conftest import Af
from tests.fleet.machines import AF, Node
from tests.fleet.test_fleet import ok, spawned
from tests.gitrepo import git


def kept(id: str) -> str:
    return f"refs/agent-farm/fleet/{id}@checkpoint"


def worktree(big: Node, id: str) -> Path:
    return big.farms[0] / ".builders" / id


def test_what_is_not_committed_comes_home(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "Fix the login")
    ok(af, "wait", id, "--timeout", "120")
    there = worktree(big, id)
    (there / "left.txt").write_text("not committed\n")
    (there / "staged.txt").write_text("staged\n")
    big.run("git", "-C", str(there), "add", "staged.txt")
    (there / "staged.txt").write_text("and changed again\n")
    assert ok(af, "fleet", "checkpoint") == f"{id} is at home\n"
    assert git(repo, "show", f"{kept(id)}:work/left.txt") == "not committed"
    assert git(repo, "show", f"{kept(id)}:work/staged.txt") == "and changed again"
    assert git(repo, "show", f"{kept(id)}:index/staged.txt") == "staged"
    head = big.run("git", "-C", str(there), "rev-parse", "HEAD").strip()
    assert git(repo, "rev-parse", f"{kept(id)}^1") == head
    assert '"Stop"' in git(repo, "show", f"{kept(id)}:run/events.jsonl/000000")
    about = json.loads(git(repo, "show", f"{kept(id)}:about.json"))
    assert git(repo, "ls-tree", "-r", "--name-only", kept(id), "talk").startswith(
        f"talk/{about['conversation']}.json/"
    )
    status = big.run("git", "-C", str(there), "status", "--porcelain")
    assert sorted(status.splitlines()) == ["?? left.txt", "AM staged.txt"], "nothing was touched there"


def test_what_has_not_changed_costs_nothing(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "Fix the login")
    ok(af, "wait", id, "--timeout", "120")
    ok(af, "fleet", "checkpoint")
    first, objects = git(repo, "rev-parse", kept(id)), git(repo, "count-objects")
    assert ok(af, "fleet", "checkpoint") == f"{id} is unchanged\n"
    assert (git(repo, "rev-parse", kept(id)), git(repo, "count-objects")) == (first, objects)
    (worktree(big, id) / "left.txt").write_text("later\n")
    assert ok(af, "fleet", "checkpoint") == f"{id} is at home\n"
    assert git(repo, "rev-parse", kept(id)) != first


def test_of_a_checkpoint_only_what_is_new_is_sent(af: Af, big: Node, repo: Path) -> None:
    """A file that is in no commit has come home with the last one."""
    id = spawned(af, "Fix the login")
    ok(af, "wait", id, "--timeout", "120")
    told = big.directory / "told"
    for name, program in (("af", AF), ("git-upload-pack", shutil.which("git-upload-pack"))):
        shim = big.program.with_name(name)
        shim.write_text(f'#!/bin/sh\n{program} "$@" | tee -a {told}\n')
        shim.chmod(0o755)
    (worktree(big, id) / "large.bin").write_bytes(os.urandom(5_000_000))
    ok(af, "fleet", "checkpoint")
    first = told.stat().st_size
    (worktree(big, id) / "small.txt").write_text("later\n")
    ok(af, "fleet", "checkpoint")
    assert git(repo, "show", f"{kept(id)}:work/small.txt") == "later"
    assert first > 5_000_000 > 50 * (told.stat().st_size - first)
