"""What builders keep to when a command is killed on its way, on whatever machine they are.

`Here` is a farm that has its builders itself; `tests/fleet/there.py` is one whose builders are elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import Af
from tests.farm import belongings
from tests.farm.belongings import Belongings
from tests.farm.conftest import Spawned
from tests.farm.killing import Kill, each_step
from tests.farm.traces import Traces, traces
from tests.gitrepo import commit_files

Spawn = Callable[..., Spawned]
DISCARD = ("--discard-changes", "--discard-commits")


@dataclass(frozen=True)
class Here:
    """`repo` is where commands are typed, `root` the farm that has the builders."""

    af: Af
    repo: Path

    @property
    def root(self) -> Path:
        return self.repo

    @property
    def base(self) -> str:
        """The ref of it that builders start from."""
        return "refs/heads/main"

    def environment(self) -> AbstractContextManager[None]:
        """That of the programs where the builders are."""
        return nullcontext()

    def traces(self) -> Traces:
        with self.environment():
            return traces(self.root)

    def heal(self, what: str) -> None:
        done = self.af("doctor", "--fix", cwd=self.repo)
        assert done.returncode == 0, f"{what}{done.stdout}{done.stderr}"


@dataclass(frozen=True)
class Full:
    """A stopped builder with all that a removal has to give back."""

    place: Here
    builder: Spawned
    owned: Belongings

    @classmethod
    def at(cls, place: Here, spawn: Spawn) -> Full:
        """Of each kind of work one, a commit that only reflogs know, and a branch with an upstream."""
        builder = spawn("--shell").stop()
        builder.git("config", f"branch.{builder.branch}.remote", ".")
        builder.git("config", f"branch.{builder.branch}.merge", place.base)
        commit_files(builder.worktree, {"amended-away.txt": "1"})
        builder.git("commit", "-q", "--amend", "-m", "another one")
        return cls(place, builder, belongings.fill(builder.worktree))

    def is_whole(self, what: str) -> bool:
        """Whole, or removed to the last trace of it."""
        builder, owned, found = self.builder, self.owned, self.place.traces()
        places = found.records, found.worktrees, found.registered, found.ports, found.runs
        if builder.id in found.records:
            assert all(place == {builder.id} for place in places), f"{what}{found}"
            assert builder.branch in found.branches
            now = belongings.read(builder.worktree)
            assert now.files.keys() == owned.files.keys(), what
            assert now == owned, what
            assert builder.state == "stopped", what
            followed = builder.git("rev-parse", "--symbolic-full-name", "@{upstream}")
            assert followed == self.place.base, what
            return True
        assert not any(places), f"{what}{found}"
        assert builder.branch not in found.branches, what
        return False

    def bring_back(self, what: str) -> None:
        done = self.builder.af("restore", self.builder.id)
        assert done.returncode == 0, f"{what}{done.stderr}"
        assert self.is_whole(what)

    def take_away(self, what: str = "") -> None:
        done = self.builder.af("prune", self.builder.id, *DISCARD)
        assert done.returncode == 0, f"{what}{done.stderr}"

    def prune_at_each_step(self, kill: Kill, first: int | str) -> tuple[int, int]:
        """How often it was whole afterwards, and how often removed and brought back."""
        whole = removed = 0
        for what in each_step(kill, first, "prune", self.builder.id, *DISCARD):
            self.place.heal(what)
            if self.is_whole(what):
                whole += 1
            else:
                removed += 1
                self.bring_back(what)
        return whole, removed

    def restore_at_each_step(self, kill: Kill, first: int | str) -> tuple[int, int]:
        self.take_away()
        whole = removed = 0
        for what in each_step(kill, first, "restore", self.builder.id):
            self.place.heal(what)
            if self.is_whole(what):
                whole += 1
                self.take_away(what)
            else:
                removed += 1
                assert self.builder.id in self.builder.af("restore", "--list").stdout, what
        assert self.is_whole("after the walk")
        return whole, removed
