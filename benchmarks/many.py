"""Many builders: forty spawned at once, a hundred stopped, recovered and removed, hundreds alive.

`BENCH_MANY=20` asks for another number than 100, `BENCH_LIVE=500` for another than 200. Raw is what a person
would do without `af`: `git worktree add` and `tmux new-session` with a Python program in the pane, after a
`python -c 'import click'` for the tool that would have been called. With `BENCH_RECORD=1` the figures go into
`benchmarks/recorded.json`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from statistics import median

import psutil

from benchmarks.ratios import record
from benchmarks.stage import AF, Stage, builders, settle, show, spawn_idle, stage

MANY = int(os.environ.get("BENCH_MANY", "100"))
LIVE = int(os.environ.get("BENCH_LIVE", "200"))
AT_ONCE = 40
ROUNDS = 3
AT_REST_SECONDS = 10.0
_MB = 1_000_000
_IDLE = ("--shell", "--runtime", "demo")
_PROGRAM = "import time; open('up', 'w').close(); time.sleep(600)"
_COUNTING = '#!/bin/sh\necho >> "{log}"\nexec {real} "$@"\n'

Figures = dict[str, float]


def main() -> None:
    with stage() as on:
        figures = at_once(on)
    with stage() as on:
        figures |= together(on, MANY)
    with stage() as on:
        figures |= alive(on, LIVE)
    show([(name, f"{value:g}") for name, value in figures.items()])
    if os.environ.get("BENCH_RECORD"):
        record("many", figures)


def at_once(on: Stage) -> Figures:
    """By the clock, taking turns; until all commands have returned."""
    numbers = count()

    def raw(number: int) -> None:
        on.run(sys.executable, "-c", "import click")
        path, branch = on.directory / "raw" / str(number), f"raw{number}"
        add = ["git", "worktree", "add", "-q", "--no-track", "-B", branch, str(path)]
        while subprocess.run(add, cwd=on.repository, env=dict(on.env), capture_output=True).returncode:
            pass  # some of many at once lose a race for git's own lock
        program = (sys.executable, "-c", _PROGRAM)
        on.run("tmux", "new-session", "-d", "-s", branch, "-c", path, "--", *program)

    def side_by_side(act: Callable[[int], object]) -> None:
        with ThreadPoolExecutor(AT_ONCE) as several:
            list(several.map(act, [next(numbers) for _ in range(AT_ONCE)]))

    ways: dict[str, Callable[[], object]] = {
        "raw": lambda: side_by_side(raw),
        "commands": lambda: side_by_side(lambda _: on.run(AF, "spawn", *_IDLE)),
        "one command": lambda: on.run(AF, "spawn", *_IDLE, "-n", str(AT_ONCE)),
    }
    on.run(AF, "spawn", *_IDLE)  # starts the server
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, act in ways.items():
            settle(on)
            times[name].append(_seconds(act))
    own = {
        name: median(spent / raw for spent, raw in zip(times[name], times["raw"], strict=True))
        for name in times
    }
    return {
        f"{AT_ONCE} raw, s": round(median(times["raw"]), 2),
        f"{AT_ONCE} af spawn at once / raw": round(own["commands"], 2),
        f"af spawn -n {AT_ONCE} / raw": round(own["one command"], 2),
    }


def together(on: Stage, number: int) -> Figures:
    """A hundred at a time: seconds by the clock, and processes of git and tmux for each."""
    ids = spawn_idle(on, number)
    on.run("tmux", "kill-server")
    figures = _counted(on, "af recover", ids, "recover", "--yes")
    settle(on)
    figures |= _at_rest(on, len(ids))
    figures |= _counted(on, "af stop --all", ids, "stop", "--all")
    return figures | _counted(on, "af prune", ids, "prune")


def alive(on: Stage, number: int) -> Figures:
    """All of them idle, one asked and answering, all removed."""
    begun = time.perf_counter()
    spawn_idle(on, number)
    spawned = time.perf_counter() - begun
    states = [one["status"]["state"] for one in json.loads(on.run(AF, "status", "--json"))["builders"]]
    one = builders(on)[0]
    status = _seconds(lambda: on.run(AF, "status"))

    def ask() -> None:
        on.run(AF, "send", one, "Hello")
        on.run(AF, "wait", one, "--timeout", "60")

    answered = _seconds(ask)
    removed = _seconds(lambda: on.run(AF, "prune", "--stop"))
    sessions = subprocess.run(["tmux", "ls"], env=dict(on.env), capture_output=True, text=True).stdout
    left = len(builders(on)) + len(sessions.splitlines()) + on.run("git", "branch").count("builder/")
    return {
        f"{number} alive: spawned and idle after, s": round(spawned, 1),
        f"{number} alive: in another state than idle": len(states) - states.count("idle"),
        f"{number} alive: af status, s": round(status, 2),
        f"{number} alive: one sent to and done, s": round(answered, 2),
        f"{number} alive: af prune --stop, s": round(removed, 1),
        f"{number} alive: left afterwards": left,
    }


def _seconds(act: Callable[[], object]) -> float:
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


def _counted(on: Stage, name: str, ids: Sequence[str], *words: str) -> Figures:
    with _stand_ins(on) as counting:
        spent = _seconds(lambda: counting.run(AF, *words))
        calls = {tool: _calls(counting, tool) for tool in ("git", "tmux")}
    return {
        f"{name}, {len(ids)} builders, s": round(spent, 2),
        **{f"{name}: {tool} processes each": round(n / len(ids), 2) for tool, n in calls.items()},
    }


@contextmanager
def _stand_ins(on: Stage) -> Iterator[Stage]:
    """git and tmux write down that they were called."""
    place = on.directory / "counting"
    place.mkdir()
    for tool in ("git", "tmux"):
        script = place / tool
        script.write_text(_COUNTING.format(log=place / f"{tool}.log", real=shutil.which(tool)))
        script.chmod(0o755)
    try:
        yield Stage(on.directory, {**on.env, "PATH": f"{place}:{on.env['PATH']}"})
    finally:
        shutil.rmtree(place)


def _calls(on: Stage, tool: str) -> int:
    log = on.directory / "counting" / f"{tool}.log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def _at_rest(on: Stage, number: int) -> Figures:
    """Of all processes that this stage has: which are `af`'s own, and what they take."""
    own = [one for one in psutil.process_iter() if _belongs(one, on)]
    launchers = [one for one in own if _says(one, "launcher.py")]
    servers = [one for one in own if _says(one, "agent_farm.server")]
    before = _processor_seconds(own)
    time.sleep(AT_REST_SECONDS)
    spent = _processor_seconds(own) - before
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


def _processor_seconds(processes: Sequence[psutil.Process]) -> float:
    times = [one.cpu_times() for one in processes]
    return sum(one.user + one.system + one.children_user + one.children_system for one in times)


if __name__ == "__main__":
    main()
