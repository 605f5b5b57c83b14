"""A clone brings programs along, and the user's PATH has entries that depend on the working directory."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.test_attach import AF, Terminal, terminal
from tests.conftest import Af
from tests.gitrepo import commit_files

__all__ = ["terminal"]

PROGRAMS = ("git", "tmux", "gh", "glab", "bd", "notify-send", "infocmp", "ssh")


@pytest.fixture
def began(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What each program of the clone that is run writes its name to."""
    log = tmp_path / "began"
    log.touch()
    for place in (repo, repo / "bin"):
        place.mkdir(exist_ok=True)
        for name in PROGRAMS:
            program = place / name
            program.write_text(f"#!/bin/sh\necho {place}/{name} >> '{log}'\n")
            program.chmod(0o755)
    commit_files(repo, {"README.md": "read me\n"})
    monkeypatch.setenv("PATH", f".:bin::{os.environ['PATH']}:")
    return log


def test_nothing_of_the_clone_is_run(repo: Path, af: Af, began: Path, terminal: Terminal) -> None:
    asked = af("spawn", "--runtime", "demo", "--issue", "42")
    assert asked.returncode == 1, asked
    done = af("spawn", "--shell", "--runtime", "demo", "--json")
    assert done.returncode == 0, done
    id = json.loads(done.stdout)["builder"]["id"]
    assert af("wait", id, "--timeout", "300").returncode == 0
    assert af("doctor").returncode in (0, 1)
    assert af("config", "set", "notify.to", "desktop").returncode == 0
    af("notify", "Look here")
    path = f"PATH=.:bin:{os.environ['PATH']}"
    terminal.type(f"unset TMUX; {path} {AF} attach {id}; echo ended=$?")
    terminal.shows("demo>")
    terminal.keys("C-b", "d")
    terminal.shows("ended=0")
    assert af("prune", id, "--stop").returncode == 0
    assert began.read_text() == ""
