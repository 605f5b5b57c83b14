"""What each verb costs, as a multiple of `python -c 'import click'` in the same run: spread, JSON and a plot.

Processor time of a command and of what it waits for is compared, since neighbours disturb that least; they
take turns with the yardstick. `BENCH_BUILDERS=100` asks for other numbers than 10. With `BENCH_RECORD=1` the
result becomes `benchmarks/recorded.json` and `docs/benchmarks.svg`; `tests/test_ratios.py` compares with it.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.chart import chart
from benchmarks.stage import AF, Stage, builders, settle, show, spawn_idle, stage

RECORDED = Path(__file__).with_name("recorded.json")
PLOT = Path(__file__).parents[1] / "docs/benchmarks.svg"
ROUNDS = 7
_COMPLETION = {"_AF_COMPLETE": "bash_complete", "COMP_WORDS": "af st", "COMP_CWORD": "1"}
# A process of its own, since what a process took before it became another program is counted as that one's.
_PEAK = (sys.executable, "-I", "-S", "-c", """
import os, sys
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
print(f"\\n{usage.ru_maxrss * 1024 / 1e6:.1f}")
sys.exit(os.waitstatus_to_exitcode(status))
""")  # fmt: skip


@dataclass(frozen=True)
class Ratio:
    """`median`, `low` and `high` are multiples of the yardstick's median; `seconds` are by the clock.

    `peak` is the memory (RSS, in MB) of the largest of its processes, where that was measured.
    """

    median: float
    low: float
    high: float
    seconds: float
    peak: float = 0.0


def main() -> None:
    counts = [int(word) for word in os.environ.get("BENCH_BUILDERS", "10").split(",")]
    found: dict[str, Ratio] = {}
    for count in counts:
        with stage() as on:
            found |= measure(on, count)
    show([(name, _row(one)) for name, one in found.items()])
    if os.environ.get("BENCH_RECORD"):
        record("machine", machine())
        record("ratios", {name: asdict(one) for name, one in found.items()})
        PLOT.write_text(chart("Processor time, in multiples of python -c 'import click'", found))


def _row(one: Ratio) -> str:
    peak = f", {one.peak:.0f} MB" if one.peak else ""
    return f"{one.median:6.1f}   {one.low:.1f} to {one.high:.1f}, {one.seconds:.2f} s{peak}"


def record(part: str, found: Mapping[str, object]) -> None:
    RECORDED.write_text(json.dumps({**json.loads(RECORDED.read_text()), part: found}, indent=1) + "\n")


def machine() -> dict[str, object]:
    tools = {name: _version(name, flag) for name, flag in (("git", "--version"), ("tmux", "-V"))}
    return {"cores": os.cpu_count(), "python": platform.python_version(), **tools}


def _version(program: str, flag: str) -> str:
    return subprocess.run([program, flag], capture_output=True, text=True, check=True).stdout.split()[-1]


def measure(on: Stage, count: int, rounds: int = ROUNDS) -> dict[str, Ratio]:
    """`count` idle demo builders are spawned, looked at, stopped and removed."""
    timer = Timer(on)
    ids = spawn_idle(on, count)
    found = {
        "af --help": timer.many((AF, "--help"), rounds),
        "shell completion": timer.many((AF,), rounds, _COMPLETION),
        "af path": timer.many((AF, "path", ids[0]), rounds),
        f"af status, {count} builders": timer.many((AF, "status"), rounds),
        f"af status --fresh, {count} builders": timer.many((AF, "status", "--fresh"), rounds),
        "af diff": timer.many((AF, "diff", ids[0]), rounds),
        "af conflicts": timer.many((AF, "conflicts"), rounds),
        "af spawn": timer.many((AF, "spawn", "--shell", "--runtime", "demo"), rounds),
        "af send": timer.each([partial(on.run, AF, "send", id, "Hello") for id in ids[:rounds]]),
        "af merge": timer.each([_merge(on, id) for id in ids[:rounds]]),
    }
    ids = builders(on)
    settle(on)
    found["git worktree add and tmux new-session"] = timer.each([_raw(on, n) for n in range(rounds)])
    on.run("tmux", "kill-server")
    found[f"af recover, {len(ids)} builders, each"] = timer.once((AF, "recover", "--yes"), len(ids))
    settle(on)
    found[f"af stop --all, {len(ids)} builders, each"] = timer.once((AF, "stop", "--all"), len(ids))
    found[f"af prune, {len(ids)} builders, each"] = timer.once((AF, "prune"), len(ids))
    found["af restore"] = timer.each([partial(on.run, AF, "restore", id) for id in ids[:rounds]])
    found["af prune ID"] = timer.each([partial(on.run, AF, "prune", id) for id in ids[:rounds]])
    return found


def _merge(on: Stage, id: str) -> Callable[[], object]:
    tree = on.repository / ".builders" / id
    (tree / f"{id}.txt").write_text("new\n")
    on.run("git", "-C", tree, "add", "-A")
    on.run("git", "-C", tree, "commit", "-q", "-m", "work")
    return lambda: on.run(AF, "merge", id)


def _raw(on: Stage, number: int) -> Callable[[], object]:
    path = on.directory / "raw" / str(number)

    def make() -> None:
        on.run("git", "worktree", "add", "-q", "--no-track", "-b", f"raw{number}", path)
        on.run("tmux", "new-session", "-d", "-s", f"raw{number}", "-c", path, "--", "sleep", "600")

    return make


class Timer:
    """Each measurement comes with one of the yardstick."""

    def __init__(self, on: Stage) -> None:
        self._on = on
        for _ in range(3):  # caches are warm from here on
            self._yardstick()

    def many(self, argv: tuple[str | Path, ...], rounds: int, env: Mapping[str, str] | None = None) -> Ratio:
        on = Stage(self._on.directory, {**self._on.env, **(env or {})})
        peak = float(on.run(*_PEAK, *argv).splitlines()[-1])
        return replace(self.each([lambda: on.run(*argv)] * rounds), peak=peak)

    def once(self, argv: tuple[str | Path, ...], parts: int) -> Ratio:
        told: list[str] = []
        found = self.each([lambda: told.append(self._on.run(*_PEAK, *argv))], parts)
        return replace(found, peak=float(told[0].splitlines()[-1]))

    def each(self, actions: list[Callable[[], object]], parts: int = 1) -> Ratio:
        yardstick, spent, clock = [], [], []
        for action in actions:
            yardstick += [self._yardstick(), self._yardstick()]
            begin = time.perf_counter()
            spent.append(processor_seconds(action))
            clock.append(time.perf_counter() - begin)
        unit = median(yardstick) * parts
        middle, low, high = (round(value / unit, 2) for value in (median(spent), min(spent), max(spent)))
        return Ratio(middle, low, high, round(median(clock) / parts, 3))

    def _yardstick(self) -> float:
        return processor_seconds(lambda: self._on.run(sys.executable, "-c", "import click"))


def processor_seconds(action: Callable[[], object]) -> float:
    """Seconds of processes that were waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    action()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
