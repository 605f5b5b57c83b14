"""The contract of builders (tests/farm/contract.py) on another machine, and what can be killed there."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from agent_farm.tmux.foreground import is_running
from tests.conftest import Af
from tests.farm import shims
from tests.farm.conftest import Spawned
from tests.farm.contract import Here, Spawn
from tests.farm.killing import Kill, each_step
from tests.farm.traces import assert_whole_or_nothing, traces
from tests.waiting import wait_until

_ANSWER_AT = Path(__file__).with_name("answer_at.py")


class Machine(Protocol):
    """A machine of the fleet, reached by ssh or in a cluster."""

    @property
    def name(self) -> str: ...

    @property
    def directory(self) -> Path: ...

    @property
    def farms(self) -> list[Path]: ...

    @property
    def environment(self) -> dict[str, str]: ...

    def runs(self, *argv: str | Path) -> None:
        """Whatever is asked there from now on is asked of this program."""

    def is_sound(self) -> None:
        """Its program is `af` again."""


@dataclass(frozen=True)
class There(Here):
    """Asked by `repo`, carried out on `node`."""

    node: Machine

    @property
    def on(self) -> str:
        """Where to spawn, to be there."""
        return self.node.name

    @property
    def root(self) -> Path:
        (farm,) = self.node.farms
        return farm

    @property
    def base(self) -> str:
        return "refs/remotes/home/main"

    @contextmanager
    def environment(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.node.environment.items():
                patch.setenv(name, value)
            yield

    def heal(self, what: str) -> None:
        """The doctor on the machine, a look, and the doctor here: then they agree on who there is."""
        with self.environment():
            self._succeeds(what, self.root, "doctor", "--fix")
        self._succeeds(what, self.repo, "status", "--fresh")
        self._succeeds(what, self.repo, "doctor", "--fix")
        self.require_agreement(what)

    def _succeeds(self, what: str, root: Path, *words: str) -> None:
        done = self.af(*words, cwd=root)
        assert done.returncode == 0, f"{what}{done.stdout}{done.stderr}"

    def require_agreement(self, what: str) -> None:
        records, book = self.traces().records, self.book()
        assert set(book["builders"]) == records, f"{what}{book}"
        assert not records & set(book["removed"]), f"{what}{book}"
        here = {name.removeprefix("builder/") for name in traces(self.repo).branches}
        assert here == records, f"{what}{here}"
        for row in book["builders"].values():
            assert row["is_known"], f"{what}{row}"
            assert not row["gone"], f"{what}{row}"

    def settled(self, what: str) -> str | None:
        """The one builder that there is after a look and the doctor, whole, or None."""
        self.heal(what)
        with self.environment():
            return assert_whole_or_nothing(self.root, what)

    def clear(self, id: str) -> None:
        """No trace of it but commits."""
        done = self.af("prune", "--stop", "--discard-commits", id, cwd=self.repo)
        assert done.returncode == 0, done
        self.empty_trash()

    def empty_trash(self) -> None:
        assert self.af("prune", "--expire", "0", cwd=self.repo).returncode == 0
        with self.environment():
            assert self.af("prune", "--expire", "0", cwd=self.root).returncode == 0

    def book(self) -> dict[str, dict[str, dict[str, object]]]:
        found: dict[str, dict[str, dict[str, object]]]
        found = json.loads((self.repo / ".agent-farm/fleet.json").read_text())
        return found


def spawn_there(place: There) -> Spawn:
    """As the fixture `spawn`, on the machine."""

    def make(*args: str) -> Spawned:
        on = ("--on", place.on, "--runtime", "demo")
        done = place.af("spawn", *(args or ("Do something",)), *on, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        record = json.loads(done.stdout)["builder"]
        assert place.af("wait", record["id"], "--timeout", "300").returncode == 0
        return Spawned(place.af, place.root, record["id"], record["branch"], Path(record["worktree"]))

    return make


def spawn_at_each_step(place: There, kill: Kill) -> tuple[int, int]:
    """How often it was killed, and how often there was a builder afterwards."""
    count = made = 0
    for what in each_step(kill, 1, "spawn", "--on", place.on, "--runtime", "demo", "Fix it"):
        count += 1
        id = place.settled(what)
        if id is not None:
            made += 1
            assert place.af("wait", id, "--for", "idle", "--timeout", "300").returncode == 0, what
            place.clear(id)
    (id,) = place.traces().records
    assert place.af("wait", id, "--for", "idle", "--timeout", "300").returncode == 0
    assert place.settled("in the end") == id
    place.clear(id)
    return count, made


@dataclass(frozen=True)
class Answers:
    """The process on a machine that carries out a verb; `told` says where it was killed."""

    told: Path

    @classmethod
    def of(cls, node: Machine, verb: str, who: str = "itself", step: int | str = "never") -> Answers:
        told = node.directory / "stopped"
        told.write_text("")
        told.with_suffix(".pid").unlink(missing_ok=True)
        node.runs(sys.executable, _ANSWER_AT, told, verb, who, str(step))
        return cls(told)

    def was_asked(self) -> bool:
        return self.told.with_suffix(".pid").exists()

    def is_running(self) -> bool:
        return is_running(int(self.told.with_suffix(".pid").read_text()))


def kill_answer(af: Af, node: Machine, verb: str, who: str | Callable[[], int] = "itself") -> Kill:
    """The process on the machine that carries out `verb`, or what it goes on without: its `connection`, or a
    process by its number."""

    def kill(step: int | str, words: tuple[str, ...]) -> str | None:
        answers = Answers.of(node, verb, who if isinstance(who, str) else str(who()), step)
        done = af(*words)
        node.is_sound()
        wait_until(lambda: not answers.is_running(), what="its end")
        if not (what := answers.told.read_text()):
            assert done.returncode == 0, done
            return None
        # a connection that dies after the answer's last word was there all the time
        is_known = who != "itself" or "as last fetched" in done.stderr
        is_known = is_known or "may have been removed" in done.stderr
        assert done.returncode in (1, 5) or is_known, f"{what}{done}"
        assert "Traceback" not in done.stderr, f"{what}{done}"
        return f"{what}{done.stdout}{done.stderr}"

    return kill


def kill_ssh(af: Af, directory: Path, action: str) -> Kill:
    """The N-th ssh that home starts, itself or by git."""

    def kill(step: int | str, words: tuple[str, ...]) -> str | None:
        place = directory / f"ssh-{words[0]}-{step}"
        done = af(*words, env=shims.make(place, "ssh", int(step), action))
        calls = shims.calls(place, "ssh")
        if len(calls) < int(step):
            assert done.returncode == 0, done
            return None
        assert done.returncode in (0, 1, 5), done
        assert "Traceback" not in done.stderr, done
        return f"before step {step}: {calls[int(step) - 1]}\n{done.stdout}{done.stderr}"

    return kill
