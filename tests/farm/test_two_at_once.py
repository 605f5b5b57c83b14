"""Two processes at once, any commands, some killed: nothing that was ever in a worktree is out of reach.

Each seed is one farm that two actors work on, in an order the machine decides. An actor writes and commits
as an agent does, switches branches, and calls `af`; one call in eight is killed with -9. Now and then the
farm is moved or copied, and what `af status` says is compared with tmux and git.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent_farm.builders.status import ALIVE
from tests.gitrepo import git, make_repo

SEEDS = range(5)
STEPS = 200  # of each of the two actors
MOST_BUILDERS = 4
# Done, an expected failure, a usage error (its builder is gone by now), refused, killed.
EXPECTED = (0, 1, 2, 4, -signal.SIGKILL)
DISCARD = ("--stop", "--discard-changes", "--discard-commits")


def hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass
class Farm:
    """What was ever written, and by which builder: the rest of the truth is asked of git and tmux."""

    root: Path
    contents: dict[str, str] = field(default_factory=dict)
    commits: dict[str, str] = field(default_factory=dict)
    expired: bool = False
    turns: tuple[threading.Lock, threading.Lock] = field(
        default_factory=lambda: (threading.Lock(), threading.Lock())
    )

    def ids(self) -> list[str]:
        builders = self.root / ".builders"
        return sorted(path.name for path in builders.iterdir()) if builders.is_dir() else []

    @contextmanager
    def calm(self, own: threading.Lock) -> Iterator[None]:
        """Nobody else is at work."""
        own.release()
        try:
            with ExitStack() as stack:
                for turn in self.turns:
                    stack.enter_context(turn)
                yield
        finally:
            own.acquire()

    def af(self, *words: str, root: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "agent_farm", *words],
            cwd=root or self.root,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=300,
        )


class Actor(threading.Thread):
    def __init__(self, farm: Farm, number: int, seed: int) -> None:
        super().__init__()
        self.farm = farm
        self.turn = farm.turns[number]
        self.random = random.Random(f"{seed} {number}")
        self.name = f"actor-{number}"
        self.count = 0
        self.done: list[str] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        ways: dict[Callable[[], None], int] = {
            self.spawn: 8,
            self.write: 14,
            self.commit: 14,
            self.switch: 4,
            self.merge: 12,
            self.prune: 10,
            self.restore: 8,
            self.doctor: 5,
            self.expire: 3,
            self.stop: 4,
            self.resume: 3,
            self.status: 5,
            self.move: 1,
            self.copy: 1,
            self.compare: 2,
        }
        try:
            for _ in range(STEPS):
                (way,) = self.random.choices(list(ways), list(ways.values()))
                with self.turn:
                    way()
        except BaseException as error:  # shown by the test, in its own thread
            self.failure = error

    def af(self, *words: str) -> None:
        """One call in eight is killed, with its git, somewhere on its way."""
        self.done.append(" ".join(words))
        process = subprocess.Popen(
            [sys.executable, "-m", "agent_farm", *words],
            cwd=self.farm.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        if self.random.randrange(8) == 0:
            with suppress(subprocess.TimeoutExpired):
                process.wait(self.random.uniform(0.05, 0.6))
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        _, said = process.communicate(timeout=300)
        assert process.returncode in EXPECTED, f"af {' '.join(words)}: {process.returncode}\n{said}"
        assert "Traceback" not in said, said

    def builder(self) -> str | None:
        ids = self.farm.ids()
        return self.random.choice(ids) if ids else None

    def spawn(self) -> None:
        if len(self.farm.ids()) < MOST_BUILDERS:
            self.af("spawn", "--shell", "--runtime", "demo")

    def write(self) -> None:
        """A new file each time, so that only af can make it vanish."""
        id = self.builder()
        if id is not None:
            self._write(id)

    def _write(self, id: str) -> str | None:
        self.count += 1
        name, content = f"{self.name}-{self.count}.txt", f"{self.name} {self.count}\n".encode()
        try:
            descriptor = os.open(
                self.farm.root / ".builders" / id / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL
            )
        except OSError:
            return None  # it is being removed
        with open(descriptor, "wb") as file:
            file.write(content)
        self.farm.contents[hash_of(content)] = id
        return name

    def commit(self) -> None:
        id = self.builder()
        name = self._write(id) if id is not None else None
        if id is None or name is None:
            return
        worktree = self.farm.root / ".builders" / id
        with suppress(AssertionError, OSError):  # it is being removed, or git's lock is taken
            git(worktree, "add", "--", name)
            git(worktree, "commit", "-q", "-m", f"{name} of {id}")
            self.farm.commits[git(worktree, "rev-parse", "HEAD")] = id

    def switch(self) -> None:
        """As agents do: a branch of their own, another name for it, or none at all."""
        id = self.builder()
        if id is None:
            return
        worktree, name = self.farm.root / ".builders" / id, f"feature/{self.name}-{self.count}"
        how = self.random.choice(
            [("switch", "-q", "-c", name), ("branch", "-m", name), ("switch", "-q", "--detach")]
        )
        with suppress(AssertionError, OSError):
            git(worktree, *how)

    def merge(self) -> None:
        id = self.builder()
        if id is not None:
            strategy = self.random.choice(["merge", "squash", "rebase"])
            self.af("merge", id, "--strategy", strategy, "--here", *self.random.choice([(), ("--prune",)]))

    def prune(self) -> None:
        id = self.builder()
        if id is not None:
            self.af("prune", *self.random.choice([(), (id,), (id, *DISCARD), (id, *DISCARD)]))

    def restore(self) -> None:
        listed = self.farm.af("restore", "--list", "--json")
        ids = [one["id"] for one in json.loads(listed.stdout)["removed"]] if listed.returncode == 0 else []
        if ids:
            self.af("restore", self.random.choice(ids))

    def doctor(self) -> None:
        self.af("doctor", "--fix")

    def expire(self) -> None:
        """Mostly of nothing; once in a while of all that is removed by then, which is to be gone."""
        if self.random.randrange(4):
            self.af("prune", "--expire", "1h")
        else:
            self.farm.expired = True
            self.af("prune", "--expire", "0")

    def stop(self) -> None:
        id = self.builder()
        if id is not None:
            self.af("stop", id)

    def resume(self) -> None:
        id = self.builder()
        if id is not None:
            self.af("resume", id)

    def status(self) -> None:
        self.af("status")

    def move(self) -> None:
        with self.farm.calm(self.turn):
            target = self.farm.root.with_name(f"moved-{self.name}-{self.count}")
            self.farm.root.rename(target)
            self.farm.root = target
            self.done.append("(moved)")

    def copy(self) -> None:
        """Whatever is done in a copy, the original does not notice."""
        with self.farm.calm(self.turn):
            copy = self.farm.root.with_name("copy")
            shutil.copytree(self.farm.root, copy, symlinks=True)
            before = live_sessions(), self.farm.ids(), git(self.farm.root, "worktree", "list", "--porcelain")
            for words in (("stop", "--all"), ("doctor", "--fix"), ("prune",)):
                done = self.farm.af(*words, root=copy)
                assert done.returncode in EXPECTED, done.stderr
            assert before == (
                live_sessions(),
                self.farm.ids(),
                git(self.farm.root, "worktree", "list", "--porcelain"),
            )
            shutil.rmtree(copy)
            self.done.append("(copied)")

    def compare(self) -> None:
        with self.farm.calm(self.turn):
            require_truth(self.farm)


def live_sessions() -> set[str]:
    done = subprocess.run(
        ["tmux", "list-panes", "-a", "-F", "#{session_name} #{pane_dead}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return {line.split()[0] for line in done.stdout.splitlines() if line.endswith(" 0")}


def require_truth(farm: Farm) -> None:
    """What status reports is so: who lives, and what git says of each worktree."""
    done = farm.af("status", "--json", "--fresh")
    assert done.returncode == 0, done.stdout
    live = live_sessions()
    for builder in json.loads(done.stdout)["builders"]:
        id, state, seen = builder["id"], builder["status"]["state"], builder["git"]
        if state in ALIVE:
            assert builder["session"] in live, f"{id} is said to be {state}"
        elif state in ("stopped", "lost"):
            assert builder["session"] not in live, f"{id} is said to be {state}"
        if seen is None or seen["problem"]:
            continue
        worktree = Path(builder["worktree"])
        rows = git(worktree, "status", "--porcelain").splitlines()
        assert seen["untracked"] == sum(row.startswith("??") for row in rows), id
        assert seen["dirty"] == sum(not row.startswith("??") for row in rows), id
        assert seen["commit"] == git(worktree, "rev-parse", "HEAD"), id
        assert (seen["branch"] or "") == git(worktree, "branch", "--show-current"), id


def on_disk(root: Path) -> set[str]:
    found = set()
    for place in (root / ".builders", root / ".agent-farm/trash"):
        for directory, folders, files in os.walk(place):
            folders[:] = [name for name in folders if name != ".git"]
            found |= {
                hash_of((Path(directory) / name).read_bytes()) for name in files if name.endswith(".txt")
            }
    return found


def in_git(root: Path, heads: list[str]) -> set[str]:
    """Contents that a ref or the HEAD of a worktree leads to."""
    listed = git(root, "rev-list", "--objects", "--all", *heads).splitlines()
    names = "\n".join(line.split()[0] for line in listed if line.endswith(".txt"))
    found = set()
    for name in names.split():
        found.add(hash_of(git(root, "cat-file", "blob", name).encode() + b"\n"))
    return found


def problems_of(farm: Farm) -> list[tuple[str, str]]:
    findings = json.loads(farm.af("doctor", "--json").stdout)["findings"]
    return [(one["what"], one["remedy"] or "") for one in findings if one["level"] == "problem"]


def remove_lock(farm: Farm, remedy: str) -> None:
    """As a person does it: what a killed git left may be an editor's, so doctor names the command alone."""
    program, _, path = remedy.partition(" ")
    lock = Path(path)
    if program == "rm" and lock.suffix == ".lock" and lock.is_relative_to(farm.root / ".git"):
        lock.unlink(missing_ok=True)


def require_reachable(farm: Farm) -> None:
    """Everything removed comes back, and then everything that was written is there."""
    for _ in range(2):
        farm.af("doctor", "--fix")
    for _, remedy in problems_of(farm):
        remove_lock(farm, remedy)
    assert problems_of(farm) == []
    removed = {one["id"] for one in json.loads(farm.af("restore", "--list", "--json").stdout)["removed"]}
    for id in sorted(removed - set(farm.ids())):
        done = farm.af("restore", id)
        assert done.returncode == 0, f"af restore {id}\n{done.stderr}"
    there = set(farm.ids())
    porcelain = git(farm.root, "worktree", "list", "--porcelain").splitlines()
    heads = [line.split()[1] for line in porcelain if line.startswith("HEAD ")]
    commits = set(git(farm.root, "rev-list", "--all", *heads).splitlines())
    contents = on_disk(farm.root) | in_git(farm.root, heads)

    def is_missed(id: str) -> bool:
        return id in there or not farm.expired  # what was removed may be expired, by request

    assert not {id for sha, id in farm.commits.items() if sha not in commits and is_missed(id)}
    assert not {id for content, id in farm.contents.items() if content not in contents and is_missed(id)}


@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_and_nothing_false_is_said(tmp_path: Path, home: Path, seed: int) -> None:
    farm = Farm(make_repo(tmp_path / "repo"))
    actors = [Actor(farm, number, seed) for number in (0, 1)]
    for actor in actors:
        actor.start()
    for actor in actors:
        actor.join()
    for actor in actors:
        if actor.failure is not None:
            actor.failure.add_note("\n".join([f"{actor.name}, seed {seed}:", *actor.done[-15:]]))
            raise actor.failure
    try:
        require_truth(farm)
        require_reachable(farm)
    except AssertionError as error:
        error.add_note("\n".join(f"{actor.name}: {'; '.join(actor.done[-30:])}" for actor in actors))
        raise
