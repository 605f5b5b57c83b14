"""Two processes at once, any commands, some killed: nothing that was ever in a worktree is out of reach.

Each seed is one farm that two actors work on, in an order the machine decides. An actor writes, commits and
rewrites as an agent does, works in the main checkout as a person does, and calls `af`; one call in eight is
killed with -9. Now and then the farm is moved or copied, and what `af status` says is compared with tmux and
git. FIRST_SEED chooses other sequences than those of every day.
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

FIRST = int(os.environ.get("FIRST_SEED", "0"))
SEEDS = range(FIRST, FIRST + 5)
STEPS = 200  # of each of the two actors
MOST_BUILDERS = 4
# Done, an expected failure, a usage error (its builder is gone by now), refused, killed.
EXPECTED = (0, 1, 2, 4, -signal.SIGKILL)
DISCARD = ("--stop", "--discard-changes", "--discard-commits")
PERSON = "person"  # who works in the main checkout, on one of these branches
BRANCHES = ("main", "other")


def content_of(name: str) -> bytes:
    return f"{name}\n".encode()


def blob_of(content: bytes) -> str:
    """git's name for it, wherever it lies."""
    return hashlib.sha1(b"blob %d\0%s" % (len(content), content), usedforsecurity=False).hexdigest()


@dataclass
class Farm:
    """What was ever written, and by whom: the rest of the truth is asked of git and tmux.

    `made` are commits and contents, with the builder they are of. `given_up` of them may be gone, since
    somebody asked for that; `landed` ones are on a branch of the person's for good.
    """

    root: Path
    made: dict[str, str] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)
    landed: set[str] = field(default_factory=set)
    rewritten: int = 0
    turns: tuple[threading.Lock, threading.Lock] = field(
        default_factory=lambda: (threading.Lock(), threading.Lock())
    )

    def ids(self) -> list[str]:
        builders = self.root / ".builders"
        return sorted(path.name for path in builders.iterdir()) if builders.is_dir() else []

    def worktrees(self) -> list[str]:
        """Not the directory of a killed spawn in which somebody wrote before git did: that is left alone."""
        return [id for id in self.ids() if (self.root / ".builders" / id / ".git").exists()]

    def give_up(self, *, but: set[str]) -> None:
        """What is removed for good on request: nothing of a builder that was there before and after."""
        self.given_up |= {name for name, id in list(self.made.items()) if id not in {*but, PERSON}}

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
            self.rewrite: 4,
            self.switch: 4,
            self.own_work: 8,
            self.own_branch: 2,
            self.merge: 12,
            self.prune: 10,
            self.restore: 8,
            self.doctor: 5,
            self.expire: 6,
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

    def af(self, *words: str) -> int:
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
        assert process.returncode != 1 or words[0] == "doctor" or "error: " in said, said
        return process.returncode

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
        return self._write_in(self.farm.root / ".builders" / id, id)

    def _write_in(self, place: Path, id: str) -> str | None:
        self.count += 1
        name = f"{self.name}-{self.count}.txt"
        try:
            descriptor = os.open(place / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except OSError:
            return None  # it is being removed
        with open(descriptor, "wb") as file:
            file.write(content_of(name))
        self.farm.made[blob_of(content_of(name))] = id
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
            self.farm.made[git(worktree, "rev-parse", "HEAD")] = id

    def rewrite(self) -> None:
        """The commit that was there is known to a reflog alone; its file stays."""
        id = self.builder()
        if id is None:
            return
        worktree = self.farm.root / ".builders" / id
        with suppress(AssertionError, OSError):
            if self.farm.made.get(git(worktree, "rev-parse", "HEAD")) == id:
                self.farm.rewritten += 1  # before and after: a merge may begin or end in between
                how = self.random.choice(
                    [("reset", "-q", "HEAD~1"), ("commit", "-q", "--amend", "-m", "again")]
                )
                git(worktree, *how)
                self.farm.rewritten += 1
                self.farm.made[git(worktree, "rev-parse", "HEAD")] = id

    def own_work(self) -> None:
        """A file in the main checkout, committed or not: with whatever is staged there by then."""
        name = self._write_in(self.farm.root, PERSON)
        if name is not None and self.random.randrange(3):
            with suppress(AssertionError):  # git's lock is taken
                git(self.farm.root, "add", "--", name)
                git(self.farm.root, "-c", f"user.name={PERSON}", "commit", "-q", "-m", f"my own {name}")

    def own_branch(self) -> None:
        with suppress(AssertionError):
            git(self.farm.root, "switch", "-q", self.random.choice(BRANCHES))

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
        """What was committed before it began is on the person's branch when it says so."""
        id = self.builder()
        if id is None:
            return
        strategy = self.random.choice(["merge", "squash", "rebase"])
        committed, rewritten = blobs_at(self.farm.root / ".builders" / id), self.farm.rewritten
        status = self.af(
            "merge", id, "--strategy", strategy, "--here", *self.random.choice([(), ("--prune",)])
        )
        if status == 0 and rewritten == self.farm.rewritten:
            self.farm.landed |= committed

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
            with self.farm.calm(self.turn):
                require_kept(self.farm)
            before = set(self.farm.ids())
            self.af("prune", "--expire", "0")
            self.farm.give_up(but=before & set(self.farm.ids()))

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
            unfinished = shutil.ignore_patterns(".*.tmp")  # of a keeper, which writes whenever it likes
            shutil.copytree(self.farm.root, copy, symlinks=True, ignore=unfinished)
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
            mend(self.farm)
            require_own_checkout(self.farm)
            require_kept(self.farm)


def live_sessions() -> set[str]:
    done = subprocess.run(
        ["tmux", "list-panes", "-a", "-F", "#{session_name} #{pane_dead}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return {line.split()[0] for line in done.stdout.splitlines() if line.endswith(" 0")}


def blobs_at(worktree: Path) -> set[str]:
    with suppress(AssertionError, OSError):
        return {line.split()[2] for line in git(worktree, "ls-tree", "-r", "HEAD").splitlines()}
    return set()


def on_branches(root: Path) -> set[str]:
    return {line.split()[0] for line in git(root, "rev-list", "--objects", *BRANCHES).splitlines()}


def require_truth(farm: Farm) -> None:
    """What status reports is so: who lives, what git says of each worktree, and what has landed."""
    done = farm.af("status", "--json", "--fresh")
    assert done.returncode == 0, done.stdout
    live, landed = live_sessions(), on_branches(farm.root)
    builders = json.loads(done.stdout)["builders"]
    assert set(farm.worktrees()) <= {builder["id"] for builder in builders}
    for builder in builders:
        id, state, seen = builder["id"], builder["status"]["state"], builder["git"]
        assert state not in ("unknown", "creating"), f"{id} is said to be {state}"
        if state in ALIVE:
            assert builder["session"] in live, f"{id} is said to be {state}"
        elif state in ("stopped", "lost"):
            assert builder["session"] not in live, f"{id} is said to be {state}"
        worktree = Path(builder["worktree"])
        if seen is None or seen["problem"]:
            assert not (worktree / ".git").exists(), f"{id}: {seen}"
            continue
        rows = git(worktree, "status", "--porcelain").splitlines()
        assert seen["untracked"] == sum(row.startswith("??") for row in rows), id
        assert seen["dirty"] == sum(not row.startswith("??") for row in rows), id
        assert seen["commit"] == git(worktree, "rev-parse", "HEAD"), id
        assert (seen["branch"] or "") == git(worktree, "branch", "--show-current"), id
        apart = git(worktree, "rev-list", "--left-right", "--count", f"{builder['base']}...HEAD").split()
        assert [str(seen["behind"]), str(seen["ahead"])] == apart, id
        if seen["landed"]:
            assert blobs_at(worktree) <= landed, f"{id} is said to have landed"


def require_own_checkout(farm: Farm) -> None:
    """Nothing of a builder lies about in the main checkout, and no commit of the person's took it along.

    The committer says whose it is: an agent that amends what its branch began with leaves the author.
    """
    rows = git(farm.root, "status", "--porcelain", "-uall").splitlines()
    log = git(farm.root, "log", f"--committer={PERSON}", "--name-only", "--format=", *BRANCHES).splitlines()
    for name in filter(None, [*(row.split()[-1] for row in rows), *log]):
        assert farm.made[blob_of(content_of(name))] == PERSON, f"{name}: {rows}"


def on_disk(root: Path) -> set[str]:
    """In the worktrees and the main checkout."""
    files = [*root.glob("*.txt"), *(root / ".builders").glob("*/*.txt")]
    return {blob_of(file.read_bytes()) for file in files}


def in_the_trash(root: Path) -> set[str]:
    """In nobody's reach before it is restored."""
    return {blob_of(file.read_bytes()) for file in (root / ".agent-farm/trash").glob("*/worktree/*.txt")}


def in_git(root: Path) -> set[str]:
    """What refs, HEADs and reflogs of all worktrees lead to."""
    porcelain = git(root, "worktree", "list", "--porcelain").splitlines()
    heads = [line.split()[1] for line in porcelain if line.startswith("HEAD ")]
    listed = git(root, "rev-list", "--objects", "--all", "--reflog", *heads).splitlines()
    return {line.split()[0] for line in listed}


def require_kept(farm: Farm, *, restored: bool = False) -> None:
    found = in_git(farm.root) | on_disk(farm.root)
    if not restored:
        found |= in_the_trash(farm.root)
    made = list(farm.made.items())
    assert not {name: id for name, id in made if name not in found and name not in farm.given_up}


def problems_of(farm: Farm) -> list[tuple[str, str]]:
    findings = json.loads(farm.af("doctor", "--json").stdout)["findings"]
    return [(one["what"], one["remedy"] or "") for one in findings if one["level"] == "problem"]


def remove_lock(farm: Farm, remedy: str) -> None:
    """As a person does it: what a killed git left may be an editor's, so doctor names the command alone."""
    program, _, path = remedy.partition(" ")
    lock = Path(path)
    if program == "rm" and lock.suffix == ".lock" and lock.is_relative_to(farm.root / ".git"):
        lock.unlink(missing_ok=True)


def mend(farm: Farm) -> None:
    for _ in range(2):
        farm.af("doctor", "--fix")
    for _, remedy in problems_of(farm):
        remove_lock(farm, remedy)
    assert problems_of(farm) == []


def require_reachable(farm: Farm) -> None:
    """Everything removed comes back, and then everything that was written is there."""
    mend(farm)
    removed = [one["id"] for one in json.loads(farm.af("restore", "--list", "--json").stdout)["removed"]]
    assert not set(removed) & set(farm.ids()), "there, and said to be removed"
    for id in sorted(set(removed)):
        done = farm.af("restore", id)
        assert done.returncode == 0, f"af restore {id}\n{done.stderr}"
    require_kept(farm, restored=True)
    assert farm.landed <= on_branches(farm.root), "it was said to have landed"


@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_and_nothing_false_is_said(tmp_path: Path, home: Path, seed: int) -> None:
    farm = Farm(make_repo(tmp_path / "repo"))
    git(farm.root, "branch", "other")
    actors = [Actor(farm, number, seed) for number in (0, 1)]
    for actor in actors:
        actor.start()
    for actor in actors:
        actor.join()
    for actor in actors:
        if actor.failure is not None:
            for one in actors:
                actor.failure.add_note("\n".join([f"{one.name}, seed {seed}:", *one.done[-15:]]))
            raise actor.failure
    try:
        require_truth(farm)
        require_reachable(farm)
        require_own_checkout(farm)
    except AssertionError as error:
        error.add_note("\n".join(f"{actor.name}: {'; '.join(actor.done[-30:])}" for actor in actors))
        raise
