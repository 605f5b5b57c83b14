"""What a builder at work keeps to when a command about it is killed on its way, on whatever machine it is.

After each kill the same command is given once more, and has to come to its end.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_farm.disk import is_locked
from agent_farm.pane.journal import digest_of_prompt
from tests.farm import belongings
from tests.farm.conftest import Spawned
from tests.farm.contract import Here, Spawn
from tests.farm.killing import Kill, each_step
from tests.farm.traces import all_sessions, environments_of, farm_name
from tests.gitrepo import commit_files, git
from tests.waiting import wait_until

LANDS = "read-tree"  # with this git begins the last step of a merge
MESSAGE = "And now the logout"


@dataclass(frozen=True)
class Working:
    """A builder whose first turn has ended, with a commit."""

    place: Here
    builder: Spawned

    @classmethod
    def at(cls, place: Here, spawn: Spawn) -> Working:
        return cls(place, spawn())

    def send_at_each_step(self, kill: Kill) -> Iterator[tuple[str, int]]:
        """What was killed, and how often the message had come by the end of the next command."""
        before = self._times()
        for what in each_step(kill, 1, "send", self.builder.id, MESSAGE):
            done = self._once_more("send", self.builder.id, MESSAGE, expected=(0, 5))
            if done.returncode:  # what the killed one had typed is a draft
                assert "draft" in done.stdout, f"{what}{done}"
                self._once_more("send", self.builder.id, "--keys", "Enter")
            self._becomes_idle()
            now = self._times()
            assert before < now <= before + (2 if done.returncode == 0 else 1), what
            self._runs_once(what)
            yield what, now - before
            before = now

    def stop_at_each_step(self, kill: Kill) -> Iterator[str]:
        kept = self._kept()
        for what in each_step(kill, 1, "stop", self.builder.id):
            self._once_more("stop", self.builder.id)
            self._is_stopped(what)
            assert self._kept() == kept, what
            yield what
            self._once_more("resume", self.builder.id)
            self._becomes_idle()
        self._is_stopped("in the end")

    def resume_at_each_step(self, kill: Kill) -> Iterator[str]:
        self._once_more("stop", self.builder.id)
        kept = self._kept()
        for what in each_step(kill, 1, "resume", self.builder.id):
            self._comes_back(what, "resume", self.builder.id)
            assert self._kept() == kept, what
            yield what
            self._once_more("stop", self.builder.id)
        self._becomes_idle()
        self._runs_once("in the end")

    def recover_at_each_step(self, kill: Kill) -> Iterator[str]:
        kept = self._kept()
        self._lose()
        for what in each_step(kill, 1, "recover", "--yes", self.builder.id):
            self._comes_back(what, "recover", "--yes", self.builder.id)
            assert self._kept() == kept, what
            yield what
            self._lose()
        self._becomes_idle()
        self._runs_once("in the end")

    def read_at_each_step(self, kill: Kill, *words: str) -> Iterator[str]:
        """By a command that changes nothing."""
        kept = self._kept()
        for what in each_step(kill, 1, *words):
            self._once_more(*words)
            self._runs_once(what)
            assert self._kept() == kept, what
            yield what

    def sync_at_each_step(self, kill: Kill) -> Iterator[str]:
        """Onto another commit of its base each time."""
        own = self._own_subjects()
        self._move_base()
        for what in each_step(kill, 1, "sync", self.builder.id):
            self._once_more("sync", self.builder.id)
            self._stands_on_base(what, own)
            yield what
            self._move_base()
        self._stands_on_base("in the end", own)

    def merge_at_each_step(
        self, kill: Kill, *options: str, first: int | str = 1
    ) -> Iterator[tuple[str, bool]]:
        """What was killed, and whether the builder was there afterwards: one that was removed is restored."""
        made = self._commit()
        for what in each_step(kill, first, "merge", *options, self.builder.id):
            again = self.builder.af("merge", *options, self.builder.id)
            self._has_landed(made, what)
            if again.returncode:  # the killed one removed it
                assert "--prune" in options, f"{what}{again.stderr}"
                self.place.heal(what)
            there = self.builder.id in self.place.traces().records
            assert there == ("--prune" not in options), f"{what}{again}"
            yield what, again.returncode == 0
            if not there:
                self._once_more("restore", self.builder.id)
            made = self._commit()
        self._has_landed(made, "in the end")
        if "--prune" in options:
            self._once_more("restore", self.builder.id)

    def _once_more(self, *words: str, expected: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
        done = self.builder.af(*words)
        assert done.returncode in expected, done
        return done

    def _comes_back(self, what: str, *words: str) -> None:
        """By this command, or it came back before: then the command says that it runs."""
        done = self.builder.af(*words)
        assert done.returncode == 0 or "is running" in done.stderr or "is not lost" in done.stderr, (
            f"{what}{done}"
        )
        self._becomes_idle()
        self._runs_once(what)

    def _becomes_idle(self) -> None:
        with self.place.environment():
            done = self.builder.af("wait", self.builder.id, "--timeout", "300", cwd=self.builder.repo)
        assert done.returncode == 0, done

    def _lose(self) -> None:
        with self.place.environment():
            subprocess.run(["tmux", "kill-session", "-t", f"={self._session}"], check=True)
        wait_until(lambda: not self._runs(), what="the end of its processes")

    @property
    def _session(self) -> str:
        return f"af-{farm_name(self.builder.repo)}-{self.builder.id}"

    def _runs(self) -> set[str]:
        """The starts of it that have a process."""
        return {
            one["AF_RUN"]
            for one in environments_of(self.builder.repo)
            if one["AF_BUILDER_ID"] == self.builder.id
        }

    def _record(self) -> dict[str, object]:
        registry = json.loads((self.builder.repo / ".agent-farm/registry.json").read_text())
        found: dict[str, object] = registry["builders"][self.builder.id]
        return found

    def _runs_once(self, what: str) -> None:
        """One session, one start of its runtime, which is the one on record."""
        with self.place.environment():
            assert all_sessions().count(self._session) == 1, what
        assert self._runs() == {self._record()["run"]}, what
        assert self._record()["state"] == "running", what
        self._nothing_is_held(what)

    def _is_stopped(self, what: str) -> None:
        with self.place.environment():
            assert self._session not in all_sessions(), what
        assert not self._runs(), what
        assert self._record()["state"] == "stopped", what
        self._nothing_is_held(what)

    def _nothing_is_held(self, what: str) -> None:
        """Once children that outlive their `af` have ended."""
        for root in {self.place.repo, self.builder.repo}:
            wait_until(lambda root=root: not list(_held(root)), what=f"no lock of {root}, {what}")

    def _kept(self) -> tuple[object, ...]:
        tree = self.builder.worktree
        return belongings.files_of(tree), git(tree, "rev-parse", "HEAD"), self._record()["conversation_id"]

    def _times(self) -> int:
        """How often its runtime has taken the message."""
        events = self.builder.repo / ".agent-farm/runs" / self.builder.id / "events.jsonl"
        return events.read_text().count(digest_of_prompt(MESSAGE))

    def _commit(self) -> int:
        """How many it has made."""
        tree = self.builder.worktree
        number = len(list(tree.glob("made-*")))
        commit_files(tree, {f"made-{number}": f"{number}\n"}, f"made {number}")
        return number + 1

    def _move_base(self) -> None:
        repo = self.place.repo
        commit_files(repo, {f"base-{len(list(repo.glob('base-*')))}": "x\n"}, "of the base")

    def _own_subjects(self) -> list[str]:
        base = self._record()["base_commit"]
        return self.builder.git("log", "--format=%s", f"{base}..HEAD").splitlines()

    def _stands_on_base(self, what: str, own: list[str]) -> None:
        main = git(self.place.repo, "rev-parse", "main")
        assert self._record()["base_commit"] == main, what
        assert self._own_subjects() == own, what
        assert self.builder.git("status", "--porcelain") == "", what
        assert git(self.place.repo, "rev-parse", self.builder.branch) == self.builder.git("rev-parse", "HEAD")
        self._runs_once(what)

    def _has_landed(self, count: int, what: str) -> None:
        """Each of its commits once, and nothing else."""
        repo = self.place.repo
        made = [
            one for one in git(repo, "log", "--format=%s", "main").splitlines() if one.startswith("made ")
        ]
        assert sorted(made) == sorted(f"made {n}" for n in range(count)), what
        assert len(list(repo.glob("made-*"))) == len(made), what
        assert git(repo, "status", "--porcelain") == "", what
        self._nothing_is_held(what)


def _held(root: Path) -> Iterator[Path]:
    locks = root / ".agent-farm"
    yield from (path for path in locks.rglob("*.lock") if is_locked(path))
    own = {"agent-farm-exclude.lock"}  # which hold nothing by being there
    yield from (path for path in (root / ".git").rglob("*.lock") if path.name not in own)
