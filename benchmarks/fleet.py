"""A fleet: many builders over four machines, one of them killed, one cut off and let back in.

`BENCH_FLEET=1000` asks for another number than 40, `BENCH_FLEET_MACHINES=2` for another than 4. Each machine
is a real sshd on loopback with a home, a tmux server and a farm of its own. Its builders run
`stub_runtime.py`, which becomes a `sleep`: what they weigh is what `af` puts beside a CLI. Everything is on
one computer: what a machine does takes the time of the others.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from threading import Event, Thread

import psutil
from msgspec import Struct

from agent_farm.farm.farm import Farm, open_farm
from agent_farm.fleet.book import Book, Row, read_book
from benchmarks.stage import AF, Rows
from benchmarks.timer import processor_seconds
from tests.conftest import end_processes, end_tmux_servers, private_home
from tests.fleet.machines import SSHD, Node, machines_for
from tests.gitrepo import commit_files, git, make_repo

MANY = int(os.environ.get("BENCH_FLEET", "40"))
MACHINES = int(os.environ.get("BENCH_FLEET_MACHINES", "4"))
ROUNDS = 5
_STUB = Path(__file__).with_name("stub_runtime.py")
_SETTINGS = '[spawn]\nruntime = "demo"\n[runtimes.demo]\ncommand = "{python} -I -S {stub}"\n'
_PATIENCE = 1800.0
_MB = 1_000_000

Figures = dict[str, str]


class Fleet(Struct):
    repository: Path
    nodes: dict[str, Node]
    nodes_home: Path

    @property
    def farm(self) -> Farm:
        return open_farm(self.repository)

    @property
    def book(self) -> Book:
        return read_book(self.farm)

    def af(self, *words: str) -> str:
        done = subprocess.run([AF, *words], cwd=self.repository, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"af {' '.join(words)}: {done.stderr[-2000:]}")
        return done.stdout


def main() -> Rows:
    if SSHD is None:
        yield "left out", "there is no sshd here: apt-get install openssh-server"
        return
    with fleet() as on, _memory_of_the_server(on) as server:
        for part in (placed, at_rest, status, killed, cut_off):
            yield from part(on).items()
            yield f"load after {part.__name__}", " ".join(f"{one:.0f}" for one in os.getloadavg())
        yield "the farm's server, at most", f"{max(server, default=0):.0f} MB (PSS)"


@contextmanager
def fleet() -> Iterator[Fleet]:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="af-fleet-")))
        short = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="af-fleet-", dir="/tmp")))
        home = stack.enter_context(private_home(directory, short))
        os.environ.pop("AF_SERVER")
        machines = stack.enter_context(machines_for(home, directory, short))
        repository = make_repo(directory / "repository")
        text = _SETTINGS.format(python=sys.executable, stub=_STUB)
        commit_files(repository, {"agent-farm.toml": text})
        names = [f"m{number}" for number in range(1, MACHINES + 1)]
        nodes = {name: machines(name) for name in names}
        on = Fleet(repository, nodes, directory)
        stack.callback(_stop_server, repository)
        for name in names:
            on.af("fleet", "add", f"ssh://{name}")
        on.af("config", "set", "fleet.restart", "auto")
        yield on


def _stop_server(repository: Path) -> None:
    subprocess.run([AF, "butler", "stop"], cwd=repository, capture_output=True, check=False)


def placed(on: Fleet) -> Figures:
    """Until each is idle, with the commit that it makes."""
    begun = time.perf_counter()
    spent = processor_seconds(lambda: _spawn(on))
    returned = time.perf_counter() - begun
    on.af("wait", *on.book.builders, "--timeout", "600")
    count = Counter(one.host for one in on.book.builders.values())
    return {
        f"{MANY} over {MACHINES} machines: spawned": f"{returned:.1f} s",
        "each, at home": f"{spent / yardstick() / MANY:.1f} C",
        "idle": f"{time.perf_counter() - begun:.1f} s",
        "on each machine": f"{min(count.values())} to {max(count.values())}, {len(on.book.builders)} in all",
    }


def _spawn(on: Fleet) -> None:
    for begun in range(0, MANY, 100):
        on.af("spawn", "--on", "fleet", "--shell", "--yes", "-n", str(min(100, MANY - begun)))


def at_rest(on: Fleet) -> Figures:
    """All processes of the machines, and what the fleet takes while nobody asks anything."""
    _wait(lambda: all(one.checkpoint for one in on.book.builders.values()), "a checkpoint of each")
    own = [one for one in psutil.process_iter() if _belongs_to(one, on.nodes_home)]
    there = [one for node in on.nodes.values() for one in own if _belongs_to(one, node.directory)]
    before, begun = _spent(on), time.perf_counter()
    time.sleep(60)
    busy = {name: spent / (time.perf_counter() - begun) for name, spent in _since(_spent(on), before).items()}
    return {
        "a builder, with all of its machine's processes": f"{_megabytes(there) / MANY:.1f} MB (PSS)",
        "fleet.json": f"{on.farm.paths.fleet.stat().st_size / MANY / 1000:.1f} kB a builder",
        "at rest, checkpoints each 20 s": "; ".join(
            f"{name} {100 * share:.1f} % of a core" for name, share in busy.items()
        ),
        "age of checkpoints": _ages(on, on.book.builders),
    }


def status(on: Fleet) -> Figures:
    found = dict[str, list[tuple[float, float]]]()
    for _ in range(ROUNDS):
        for word in ("status", "--help"):
            begun = time.perf_counter()
            spent = processor_seconds(lambda word=word: on.af(word))  # type: ignore[misc]
            found.setdefault(word, []).append((time.perf_counter() - begun, spent))
    seconds, spent = (median(values) for values in zip(*found["status"], strict=True))
    rows = json.loads(on.af("status", "--json"))["builders"]
    return {
        f"af status of {len(rows)}": f"{seconds:.2f} s by the clock, {spent / yardstick():.1f} C at home",
        "in another state than idle": str(sum(one["status"]["state"] != "idle" for one in rows)),
    }


def killed(on: Fleet) -> Figures:
    """One machine, its panes included; the farm's server places its builders elsewhere."""
    name = next(iter(on.nodes))
    node, lost = on.nodes[name], set(on.book.on(name))
    others = {id: pids for id, pids in runtimes(on).items() if id not in lost}
    before = {id: _checked_out(on, id) for id in lost}
    ages, beats = _ages(on, lost), _beats(on, lost)
    begun = time.perf_counter()
    node.stop()
    end_tmux_servers(node.sockets)
    end_processes(node.home)
    _wait(lambda: _are_back(on, lost, name), f"the builders of {name}")
    back = time.perf_counter() - begun
    same = sum(_checked_out(on, id) == before[id] for id in lost)
    undisturbed = sum(runtimes(on).get(id) == pids for id, pids in others.items())
    figures = {
        f"{name} killed, with its builders": str(len(lost)),
        "their checkpoints were": f"{ages}, what the busy ones had written {beats}",
        "the last one was back after": f"{back:.0f} s",
        "commits as before": f"{same} of {len(lost)}",
        **_commits(on),
        "others undisturbed": f"{undisturbed} of {len(others)}",
    }
    node.start()
    return figures


def cut_off(on: Fleet) -> Figures:
    """One machine is out of reach until its builders go on elsewhere, and comes back."""
    name = list(on.nodes)[-1]
    node, lost = on.nodes[name], set(on.book.on(name))
    begun = time.perf_counter()
    node.stop()
    _wait(lambda: _are_back(on, lost, name), f"the builders of {name}")
    back = time.perf_counter() - begun
    twice = sum(len(pids) > 1 for pids in runtimes(on).values())
    node.start()
    _wait(lambda: all(len(pids) == 1 for pids in runtimes(on).values()), "one of each")
    count = Counter(len(runtimes(on).get(id, ())) for id in on.book.builders)
    _wait(lambda: all(one.commit for one in on.book.left), "what was left on machines")
    return {
        f"{name} cut off, with its builders": str(len(lost)),
        "the last one was placed elsewhere after": f"{back:.0f} s",
        "meanwhile there were two of": str(twice),
        "after it has healed": ", ".join(f"{n} of {many}" for n, many in count.items()),
        **_commits(on),
    }


def _are_back(on: Fleet, ids: set[str], left: str) -> bool:
    book = on.book
    placed = [book.builders[id] for id in ids]
    return all(one.host != left and one.is_known and _is_idle(one.row) for one in placed)


def _is_idle(row: Row | None) -> bool:
    return row is not None and row.status.state == "idle"


def _wait(condition: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > until:
            sys.exit(f"waited {_PATIENCE:g} s for {what}")
        time.sleep(1)


def runtimes(on: Fleet) -> dict[str, list[int]]:
    """The processes that stand for a runtime, by builder, on whatever machine."""
    found = dict[str, list[int]]()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            if words[:1] in (["sleep"], ["sh"]) and words[-1:] != ["5"]:
                env = process.environ()
                if (id := env.get("AF_BUILDER_ID")) and env.get("HOME", "").startswith(str(on.nodes_home)):
                    found.setdefault(id, []).append(process.pid)
    return found


def _commits(on: Fleet) -> Figures:
    """On the machine on which each builder is now."""
    found = Counter[int]()
    for name, node in on.nodes.items():
        ids = [id for id, one in on.book.builders.items() if one.host == name]
        for id in ids if node.farms else ():
            titles = git(node.farms[0], "log", "--format=%s", f"builder/{id}")
            found[titles.splitlines().count(f"Work of {id}")] += 1
    return {"builders with 0, 1, 2 commits of their own": f"{found[0]}, {found[1]}, {found[2]}"}


def _checked_out(on: Fleet, id: str) -> str:
    placed = on.book.builders[id]
    return git(on.nodes[placed.host].farms[0], "rev-parse", f"builder/{id}")


def _ages(on: Fleet, ids: Mapping[str, object] | set[str]) -> str:
    book, now = on.book, time.time()
    ages = sorted(now - one.at if (one := book.builders[id].checkpoint) else 1e9 for id in ids)
    return f"{ages[len(ages) // 2]:.0f} s old, {ages[-1]:.0f} s at most"


def _beats(on: Fleet, ids: set[str]) -> str:
    """How old what the busy ones wrote is, in their checkpoints here."""
    now, ages = time.time(), list[float]()
    for id in ids:
        text = git(on.repository, "show", f"refs/agent-farm/fleet/{id}@checkpoint:work/beat.txt")
        if re.fullmatch(r"[1-9]\d+", text):
            ages.append(now - int(text))
    return f"{max(ages):.0f} s at most, of {len(ages)}" if ages else "nothing"


def yardstick() -> float:
    argv = [sys.executable, "-c", "import click"]
    return median(processor_seconds(lambda: subprocess.run(argv, check=True)) for _ in range(5))


@contextmanager
def _memory_of_the_server(on: Fleet) -> Iterator[list[float]]:
    """With its supervisor, each few seconds."""
    found, over = list[float](), Event()

    def look() -> None:
        while not over.wait(5):
            servers = [
                one for one in psutil.process_iter() if _is_server(one) and _belongs_to(one, on.nodes_home)
            ]
            found.append(_megabytes(servers))

    watcher = Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield found
    finally:
        over.set()
        watcher.join()


def _is_server(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return any("agent_farm.server" in word or "supervisor.py" in word for word in process.cmdline())
    return False


def _belongs_to(process: psutil.Process, directory: Path) -> bool:
    with suppress(psutil.Error):
        return process.environ().get("HOME", "").startswith(f"{directory}/")
    return False


def _megabytes(processes: list[psutil.Process]) -> float:
    total = 0.0
    for one in processes:
        with suppress(psutil.Error):
            total += one.memory_full_info().pss
    return total / _MB


def _spent(on: Fleet) -> dict[str, float]:
    """Processor time by now, of what has ended, too: a machine is what its sshd and its tmux have started."""
    there = set[int]()
    for node in on.nodes.values():
        if node.daemon:
            daemon = psutil.Process(node.daemon.pid)
            there |= {daemon.pid, *(one.pid for one in daemon.children(recursive=True))}
    found = {"home": 0.0, "machines": 0.0}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            home = process.environ().get("HOME", "") if process.pid not in there else ""
            is_there = process.pid in there or any(str(node.home) == home for node in on.nodes.values())
            if is_there or home == str(on.nodes_home / "home"):
                times = process.cpu_times()
                spent = times.user + times.system + times.children_user + times.children_system
                found["machines" if is_there else "home"] += spent
    return found


def _since(now: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    return {name: now[name] - before[name] for name in now}


if __name__ == "__main__":
    main()
