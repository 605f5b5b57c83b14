"""The contract of builders (tests/farm/contract.py) on a cluster's machine, and what can be killed there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from agent_farm.engine.held import HeldEngine
from agent_farm.farm.farm import open_farm
from agent_farm.fleet.book import read_book
from agent_farm.fleet.calling import slot_name
from tests.conftest import Af, af_in, private_home
from tests.engine.engines import Cluster, cluster_in
from tests.farm.killing import Kill, kill_af
from tests.fleet.there import There, kill_answer, spawn_there
from tests.forking import Forks
from tests.gitrepo import make_repo
from tests.own_python import OwnPython
from tests.waiting import wait_until

ROOM = {"n1": 3, "n2": 1}
_HOLDER_AT = Path(__file__).with_name("holder_at.py")
_HOLDER = "agent_farm.engine.holder"


@dataclass(frozen=True)
class OnACluster(There):
    """On `node`, which has the most room; `cluster` has another machine."""

    cluster: Cluster
    armed: Path

    @property
    def on(self) -> str:
        return "fleet"

    def require_agreement(self, what: str) -> None:
        super().require_agreement(what)
        book = read_book(open_farm(self.repo))
        expected = {slot_name(book, id, one.term): self.node.name for id, one in book.builders.items()}
        assert self.engine.places() == expected, what
        others = [node for node in self.cluster.nodes.values() if node is not self.node]
        assert not any(node.farms for node in others), what

    @property
    def engine(self) -> HeldEngine:
        return HeldEngine(self.cluster.address)

    def holders(self) -> list[int]:
        found = []
        for one in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if {_HOLDER, self.cluster.address} <= set(one.cmdline()):
                    found.append(one.pid)
        return found

    def holder(self) -> int:
        self.engine.capacity()  # which starts it
        (pid,) = self.holders()
        return pid

    def is_quiet(self) -> bool:
        """Whether nothing is asked on any machine; what lost its asker goes on there."""
        homes = {str(node.home) for node in self.cluster.nodes.values()}
        for one in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if one.cmdline()[-2:] == ["fleet", "answer"] and one.environ().get("HOME") in homes:
                    return False
        return True

    def kill_holder(self, when: str) -> Kill:
        """At its N-th question, `before` the engine is asked or `after` it has answered."""

        def kill(step: int | str, words: tuple[str, ...]) -> str | None:
            told = self.armed.with_suffix(".told")
            told.unlink(missing_ok=True)
            self.armed.write_text(f"{step} {when}")
            done = self.af(*words)
            if not told.exists():
                self.armed.unlink()
                assert done.returncode == 0, done
                return None
            what = f"{when} {told.read_text()}{done.stdout}{done.stderr}"
            assert done.returncode in (0, 1, 5), f"{what}{done}"
            assert "Traceback" not in done.stderr, what
            return what

        return kill

    def way(self, name: str, verb: str, stride: int) -> Kill:
        """Kills at every `stride`-th step only. `verb` is what the machine is asked for."""
        kill = self._way(name, verb)

        def killed(step: int | str, words: tuple[str, ...]) -> str | None:
            found = kill(int(step) + stride - 1, words)
            wait_until(self.is_quiet, what=f"the end of what was asked, {found}")
            return found

        return killed

    def _way(self, name: str, verb: str) -> Kill:
        if name == "home":
            return kill_af(self.repo)
        if name in ("before", "after"):
            return self.kill_holder(name)
        if name == "holder":
            return kill_answer(self.af, self.node, verb, self.holder)
        return kill_answer(self.af, self.node, verb, "connection" if name == "agent" else "itself")


@contextmanager
def on_a_cluster(directory: Path, short: Path) -> Iterator[OnACluster]:
    """A home, its head, and two machines that have joined."""
    with private_home(directory, short), cluster_in(directory, short) as cluster:
        armed, python = directory / "armed", OwnPython.at(directory / "python")
        python.runs(_HOLDER, sys.executable, _HOLDER_AT, armed)
        repo = make_repo(directory / "repo")
        forks = Forks(dict(os.environ), python.path)
        try:
            af: Af = af_in(repo, forks)
            cluster.up(af)
            node, _ = (cluster.machine(name) for name in ROOM)
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda one: cluster.join(one[0], slots=one[1]), ROOM.items()))
            place = OnACluster(af, repo, node, cluster, armed)
            place.clear(spawn_there(place)("--shell").id)  # it has a farm from now on
            yield place
        finally:
            forks.end()
