"""Any sequence of commands leaves a readable registry, and loses no commit and no file.

Hypothesis draws the sequences; git and tmux are real. Whatever was ever written must be found again: on a
branch, in a worktree, in a salvage or in the trash.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from agent_farm.cli.main import run
from tests.farm.traces import end_tmux
from tests.gitrepo import commit_files, git, make_repo

# Exit codes of an expected answer: done, a refusal that is a failure, of words, because work would be lost.
EXPECTED = (0, 1, 2, 4)
BOTH = ("--discard-changes", "--discard-commits")
builders = st.integers(0, 5)


def hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Farm(RuleBasedStateMachine):
    """Up to a few builders; rules name one by a number, taken modulo how many there are."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="af-sequence-"))
        self.repo = make_repo(self.place / "repo", {"README.md": "# scratch\n", ".gitignore": "*.local\n"})
        self.commits: dict[str, str] = {}  # with the hash of the content that each brought
        self.contents: set[str] = set()
        self.made: list[str] = []
        self.count = 0
        self.here = os.getcwd()
        os.chdir(self.repo)

    def teardown(self) -> None:
        os.chdir(self.here)
        end_tmux()
        shutil.rmtree(self.place, ignore_errors=True)

    def af(self, *words: str) -> int:
        code = run(list(words))
        assert code in EXPECTED, f"af {' '.join(words)} ended with {code}"
        return code

    def records(self) -> dict[str, dict[str, str]]:
        file = self.repo / ".agent-farm/registry.json"
        found: dict[str, dict[str, str]] = json.loads(file.read_text())["builders"] if file.exists() else {}
        return found

    def worktree(self, number: int) -> Path | None:
        there = [self.repo / ".builders" / id for id in self.records()]
        return there[number % len(there)] if there else None

    @initialize()
    def two_builders_at_work(self) -> None:
        for number in range(2):
            self.spawn()
            self.commit(number, "a.txt")
            self.write(number, "new.txt")
            self.write(number, "own.local")

    @precondition(lambda self: len(self.made) < 4)
    @rule()
    def spawn(self) -> None:
        before = set(self.records())
        assert self.af("spawn", "--shell", "--runtime", "demo") == 0
        self.made += sorted(set(self.records()) - before)

    @rule(number=builders, name=st.sampled_from(["a.txt", "b.txt", "README.md"]))
    def commit(self, number: int, name: str) -> None:
        worktree = self.worktree(number)
        if worktree is not None and worktree.is_dir():
            text = self.write_over(worktree / name)
            self.commits[commit_files(worktree, {name: text}, "work")] = hash_of(text.encode())

    @rule(number=builders, name=st.sampled_from(["README.md", "new.txt", "deep/new.txt", "own.local"]))
    def write(self, number: int, name: str) -> None:
        """Changed, untracked or ignored."""
        worktree = self.worktree(number)
        if worktree is not None and worktree.is_dir():
            self.write_over(worktree / name)

    def write_over(self, target: Path) -> str:
        """What was there was the writer's to replace, unless a commit holds it."""
        if target.exists():
            self.contents.discard(hash_of(target.read_bytes()))
        self.count += 1
        text = f"line {self.count}\n"
        target.parent.mkdir(exist_ok=True)
        target.write_text(text)
        self.contents = self.contents | {hash_of(text.encode())} | set(self.commits.values())
        return text

    @rule(number=builders, all=st.booleans())
    def stop(self, number: int, all: bool) -> None:
        worktree = self.worktree(number)
        if all:
            self.af("stop", "--all")
        elif worktree is not None:
            self.af("stop", worktree.name)

    @rule(number=builders)
    def resume(self, number: int) -> None:
        worktree = self.worktree(number)
        if worktree is not None:
            self.af("resume", worktree.name)

    @rule(number=builders, strategy=st.sampled_from(["merge", "squash", "rebase", "ff"]), prune=st.booleans())
    def merge(self, number: int, strategy: str, prune: bool) -> None:
        worktree = self.worktree(number)
        if worktree is not None:
            self.af("merge", worktree.name, "--strategy", strategy, *(["--prune"] if prune else []))

    @rule(number=builders, flags=st.sampled_from([(), BOTH, BOTH, BOTH, BOTH[:1], BOTH[1:]]))
    def remove(self, number: int, flags: tuple[str, ...]) -> None:
        worktree = self.worktree(number)
        if worktree is not None:
            self.af("stop", worktree.name)
            self.af("prune", worktree.name, *flags)

    @precondition(lambda self: len(self.records()) < len(self.made))
    @rule(number=builders)
    def restore(self, number: int) -> None:
        gone = [id for id in self.made if id not in self.records()]
        assert self.af("restore", gone[number % len(gone)]) == 0

    @rule(number=builders, kind=st.sampled_from(["prune", "doctor", "tmux", "away"]))
    def disturb(self, number: int, kind: str) -> None:
        """What goes on around builders; `away` is a worktree that is not there for a moment."""
        worktree = self.worktree(number)
        if kind == "prune":
            self.af("prune")
        elif kind == "doctor":
            self.af("doctor", "--fix")
        elif kind == "tmux":
            end_tmux()
        elif worktree is not None and worktree.is_dir():
            away = worktree.with_name("away")
            worktree.rename(away)
            self.af("status")
            away.rename(worktree)

    @invariant()
    def nothing_is_lost(self) -> None:
        self.af("status")
        reachable = set(git(self.repo, "rev-list", "--all").splitlines())
        heads = git(self.repo, "worktree", "list", "--porcelain").splitlines()
        reachable |= {line.split()[1] for line in heads if line.startswith("HEAD ")}
        assert self.commits.keys() <= reachable, "a commit is reachable from nowhere"
        missing = self.contents - self.on_disk()
        assert missing <= self.in_git(missing), "a file's content is nowhere"

    def on_disk(self) -> set[str]:
        found = set()
        for root in (self.repo / ".builders", self.repo / ".agent-farm/trash"):
            for directory, folders, files in os.walk(root):
                folders[:] = [name for name in folders if name != ".git"]
                paths = (Path(directory) / name for name in files)
                found |= {hash_of(path.read_bytes()) for path in paths}
        return found

    def in_git(self, wanted: set[str]) -> set[str]:
        """Blobs that a ref leads to: branches and salvages."""
        if not wanted:
            return set()
        listed = git(self.repo, "rev-list", "--all", "--objects").splitlines()
        names = "\n".join(line.split()[0] for line in listed)
        done = subprocess.run(
            ["git", "cat-file", "--batch"], cwd=self.repo, input=names.encode(), capture_output=True
        )
        return {hash for hash in wanted if hash in self.hashes(done.stdout)}

    def hashes(self, batch: bytes) -> set[str]:
        found, position = set(), 0
        while position < len(batch):
            end = batch.index(b"\n", position)
            _, kind, size = batch[position:end].split()
            content = batch[end + 1 : end + 1 + int(size)]
            if kind == b"blob":
                found.add(hash_of(content))
            position = end + 2 + int(size)
        return found


@pytest.mark.slow
def test_any_sequence_loses_nothing(home: Path) -> None:
    run_state_machine_as_test(
        Farm,
        settings=settings(
            max_examples=12,
            stateful_step_count=15,
            deadline=None,
            database=None,
            derandomize="CI" in os.environ,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        ),
    )
