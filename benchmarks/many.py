"""Many builders: forty spawned at once, a hundred at rest, five hundred alive.

`BENCH_MANY=20` asks for another number than 100, `BENCH_LIVE=200` for another than 500. Raw is what a person
would do without `af`: `git worktree add` and `tmux new-session` with a Python program in the pane, after a
`python -c 'import click'` for the tool that would have been called.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import psutil

from benchmarks import raw
from benchmarks.ratios import looked_at
from benchmarks.stage import (
    AF,
    IMPORT_CLICK,
    Rows,
    Stage,
    builders,
    ratio,
    seconds,
    settle,
    spawn_idle,
    spread,
    stage,
)  # fmt: skip
from benchmarks.timer import Timer, processor_seconds

MANY = int(os.environ.get("BENCH_MANY", "100"))
LIVE = int(os.environ.get("BENCH_LIVE", "500"))
AT_ONCE = 40
ROUNDS = 5
AT_REST_SECONDS = 10.0
_MB = 1_000_000
_IDLE = ("--shell", "--runtime", "demo")
_PROGRAM = (sys.executable, "-c", "import time; open('up', 'w').close(); time.sleep(600)")

Figures = dict[str, object]


def main() -> Rows:
    for part in (at_once, at_rest, alive):
        with stage() as on:
            yield from part(on).items()


def at_once(on: Stage, rounds: int = ROUNDS) -> Figures:
    """Taking turns, until all commands have returned."""
    numbers = count()

    def bare(number: int) -> None:
        on.run(*IMPORT_CLICK)
        add, start = raw.spawn(on, number, _PROGRAM)
        while subprocess.run(add, cwd=on.repository, env=dict(on.env), capture_output=True).returncode:
            pass  # some of many at once lose a race for git's own lock
        on.run(*start)

    def side_by_side(act: Callable[[int], object]) -> None:
        with ThreadPoolExecutor(AT_ONCE) as several:
            list(several.map(act, [next(numbers) for _ in range(AT_ONCE)]))

    ways: dict[str, Callable[[], object]] = {
        "raw": lambda: side_by_side(bare),
        f"{AT_ONCE} af spawn at once": lambda: side_by_side(lambda _: on.run(AF, "spawn", *_IDLE)),
        f"af spawn -n {AT_ONCE}": lambda: on.run(AF, "spawn", *_IDLE, "-n", str(AT_ONCE)),
    }
    on.run(AF, "spawn", *_IDLE)  # starts the server
    times: dict[str, list[float]] = {name: [] for name in ways}
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, act in ways.items():
            settle(on)
            begin = time.perf_counter()
            spent[name].append(processor_seconds(act))
            times[name].append(time.perf_counter() - begin)
    figures: Figures = {f"{AT_ONCE} raw at once, s": spread(times["raw"])}
    for name in list(ways)[1:]:
        figures[f"{name} / raw"] = ratio(times[name], times["raw"])
        figures[f"{name}, processor time / raw"] = ratio(spent[name], spent["raw"])
    return figures


def alive(on: Stage, number: int = LIVE) -> Figures:
    """All of them idle, looked at, one asked and answering, all removed."""
    spawned = seconds(lambda: spawn_idle(on, number))
    states = [one["status"]["state"] for one in json.loads(on.run(AF, "status", "--json"))["builders"]]
    statuses = looked_at(on, Timer(on))
    one = builders(on)[0]

    def ask() -> None:
        on.run(AF, "send", one, "Hello")
        on.run(AF, "wait", one, "--timeout", "60")

    answered = seconds(ask)
    removed = seconds(lambda: on.run(AF, "prune", "--stop"))
    sessions = subprocess.run(["tmux", "ls"], env=dict(on.env), capture_output=True, text=True).stdout
    left = len(builders(on)) + len(sessions.splitlines()) + on.run("git", "branch").count("builder/")
    return {
        **statuses,
        f"{number} alive: spawned and idle after, s": round(spawned, 1),
        f"{number} alive: in another state than idle": len(states) - states.count("idle"),
        f"{number} alive: one sent to and done, s": round(answered, 2),
        f"{number} alive: af prune --stop, s": round(removed, 1),
        f"{number} alive: left afterwards": left,
    }


def at_rest(on: Stage, number: int = MANY) -> Figures:
    """Of all processes that this stage has: which are `af`'s own, and what they take."""
    spawn_idle(on, number)
    own = [one for one in psutil.process_iter() if _belongs(one, on)]
    launchers = [one for one in own if _says(one, "launcher.py")]
    servers = [one for one in own if _says(one, "agent_farm.server")]
    before = _spent_by(own)
    time.sleep(AT_REST_SECONDS)
    spent = _spent_by(own) - before
    return {
        "an idle builder: processes beside its CLI": round(len(launchers) / number, 2),
        "an idle builder: MB (PSS) beside its CLI": round(_megabytes(launchers) / number, 1),
        "the server and its supervisor: MB (PSS)": round(_megabytes(servers), 1),
        f"{number} idle builders: % of a core": round(100 * spent / AT_REST_SECONDS, 2),
    }


def _belongs(process: psutil.Process, on: Stage) -> bool:
    try:
        return process.environ().get("HOME") == str(on.directory)
    except psutil.Error:
        return False


def _says(process: psutil.Process, word: str) -> bool:
    return any(word in one for one in process.cmdline())


def _megabytes(processes: Sequence[psutil.Process]) -> float:
    return sum(one.memory_full_info().pss for one in processes) / _MB


def _spent_by(processes: Sequence[psutil.Process]) -> float:
    times = [one.cpu_times() for one in processes]
    return sum(one.user + one.system + one.children_user + one.children_system for one in times)
