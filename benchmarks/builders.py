"""Spawn against git and tmux for the same, by the clock: 50 files; many files, cold, ready and moved.

`BENCH_FILES=20000` asks for other numbers of files than 20,000 and 100,000.
"""

from __future__ import annotations

import itertools
import os
import time
from functools import partial

from benchmarks import raw
from benchmarks.stage import (
    AF,
    IMPORT_CLICK,
    Rows,
    Stage,
    difference,
    ratio,
    run_all,
    seconds,
    settle,
    spread,
    stage,
    turns,
)

FILES = tuple(map(int, os.environ.get("BENCH_FILES", "20000,100000").split(",")))
_BARS_ARE_FOR = 100_000
_SPAWN = (AF, "spawn", "--shell", "--runtime", "demo")


def main() -> Rows:
    with stage() as small:
        yield from _small(small)
    for files in FILES:
        with stage(files=files) as large:
            yield from _large(large, files)


def _small(on: Stage) -> Rows:
    numbers = itertools.count()
    times = turns(
        {
            "click": lambda: on.run(*IMPORT_CLICK),
            "raw": lambda: run_all(on, raw.spawn(on, next(numbers))),
            "af": lambda: on.run(*_SPAWN),
        },
        after=lambda: settle(on),
    )
    more = [one - other for one, other in zip(times["af"], times["raw"], strict=True)]
    yield "50 files: af spawn / raw", ratio(times["af"], times["raw"])
    yield "50 files: af spawn over raw, in C (bar: 2)", ratio(more, times["click"])
    yield "50 files: af spawn over raw, s", difference(times["af"], times["raw"])


def _large(on: Stage, files: int) -> Rows:
    """Cold is a branch that is there: no ready worktree is taken for one. They take turns."""
    on.run(AF, "config", "set", "--user", "pool.size", "1")
    spent: dict[str, list[float]] = {"raw": [], "cold": [], "ready": [], "moved": []}
    for number in range(3):
        spent["raw"].append(seconds(partial(run_all, on, raw.spawn(on, number))))
        on.run("git", "branch", f"cold-{number}")
        spent["cold"].append(seconds(partial(on.run, *_SPAWN, "--branch", f"cold-{number}")))
        _whole_pool(on)
        spent["ready"].append(seconds(partial(on.run, *_SPAWN)))
        _whole_pool(on)
        for place in range(5):
            (on.repository / f"d{place}/f{place * 100}.txt").write_text(f"{number}\n")
        on.run("git", "commit", "-q", "-a", "-m", f"five files {number}")
        spent["moved"].append(seconds(partial(on.run, *_SPAWN)))
        _whole_pool(on)
    for name, bar in (("cold", 1.10), ("ready", 0.15), ("moved", 0.15)):
        wanted = f" (bar: {bar:.2f})" if files == _BARS_ARE_FOR else ""
        yield f"{files:,} files: af spawn, {name}{wanted} / raw", ratio(spent[name], spent["raw"])
    yield f"{files:,} files: raw, s", spread(spent["raw"])


def _whole_pool(large: Stage) -> None:
    while large.run(AF, "pool", "fill") != "1 ready":  # another process is at it
        time.sleep(0.2)
    settle(large)
