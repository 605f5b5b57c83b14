from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.gitrepo import git


@dataclass(frozen=True)
class Spawned:
    """A builder of the demo runtime whose turn has ended."""

    af: Af
    repo: Path
    id: str
    branch: str
    worktree: Path

    @property
    def tip(self) -> str:
        return git(self.repo, "rev-parse", self.branch)

    @property
    def state(self) -> str:
        return status_of(self.af, self.id)["status"]["state"]

    def stop(self) -> Spawned:
        done = self.af("stop", self.id)
        assert done.returncode == 0, done.stderr
        return self

    def git(self, *args: str) -> str:
        return git(self.worktree, *args)


def status_of(af: Af, id: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(af("status", id, "--json").stdout)["builders"][0]
    return found


@pytest.fixture
def spawn(af: Af, repo: Path) -> Callable[..., Spawned]:
    """`spawn()` works and commits once; `spawn("--shell")` does nothing."""

    def make(*args: str) -> Spawned:
        words = args or ("Do something",)
        done = af("spawn", *words, "--runtime", "demo", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        record = json.loads(done.stdout)["builder"]
        waited = af("wait", record["id"], "--timeout", "300")
        assert waited.returncode == 0, waited.stderr
        return Spawned(af, repo, record["id"], record["branch"], Path(record["worktree"]))

    return make
