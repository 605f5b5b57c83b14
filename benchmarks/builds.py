"""Builds of twelve builders at once, each of four processes: with `limits.builds` and without.

`BENCH_BUILD_MB=1500` asks for another peak of each process than 100 MB, `BENCH_BUILD_SECONDS=5` for another
processor time than 1 s. Without limits all 48 are there at once: where their memory is not, that part is left
out, since the kernel would end some of them, and perhaps something else.
"""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from threading import Event, Thread

import psutil

from benchmarks.stage import AF, Rows, Stage, builders, spawn_idle, stage

BUILDERS, PROCESSES, SLOTS = 12, 4, 2
MEGABYTES = int(os.environ.get("BENCH_BUILD_MB", "100"))
SECONDS = float(os.environ.get("BENCH_BUILD_SECONDS", "1"))
_JOB = (
    "import sys, time; size = int(sys.argv[1]) << 20; block = bytearray(size)\n"
    "block[::4096] = b'x' * (size >> 12)\n"
    "while time.process_time() < float(sys.argv[2]): pass"
)
_MAKE = """#!/bin/sh
for number in {numbers}; do '{python}' -c "{job}" {megabytes} {seconds} || echo failed >> '{failed}' & done
wait
"""


def main() -> Rows:
    with stage() as on:
        on.run(AF, "config", "set", "limits.builds", str(SLOTS))
        on.run(AF, "config", "set", "limits.build_memory", str(PROCESSES * MEGABYTES))
        spawn_idle(on, BUILDERS)
        tools = _make_tool(on)
        rest = _watched(on, lambda: time.sleep(15))
        free = _watched(on, lambda: _build_all(on, [tools])) if _fits() else {"makespan": "left out"}
        governed = _watched(on, lambda: _build_all(on, [None, tools]))
    rows = [("nothing built", rest), ("without limits", free), (f"limits.builds = {SLOTS}", governed)]
    return [(f"{name}: {what}", value) for name, found in rows for what, value in found.items()]


def _fits() -> bool:
    there = 0.8 * psutil.virtual_memory().available
    return there > BUILDERS * PROCESSES * MEGABYTES << 20


def _make_tool(on: Stage) -> Path:
    tools = on.directory / "tools"
    tools.mkdir()
    numbers = " ".join(map(str, range(PROCESSES)))
    script = _MAKE.format(
        numbers=numbers, python=sys.executable, job=_JOB, megabytes=MEGABYTES, seconds=SECONDS,
        failed=on.directory / "failed",
    )  # fmt: skip
    (tools / "make").write_text(script)
    (tools / "make").chmod(0o755)
    return tools


def _build_all(on: Stage, places: list[Path | None]) -> None:
    """`make` in each worktree, as an agent there would call it; None is what `af` puts on its PATH."""
    begun = []
    for id in builders(on):
        run = on.repository / ".agent-farm/runs" / id
        path = os.pathsep.join([*(str(place or run / "bin") for place in places), on.env["PATH"]])
        tree = on.repository / ".builders" / id
        env = {**on.env, "PATH": path, "AF_RUN": json.loads((run / "governor.json").read_text())["run"]}
        begun.append(  # each in a session of its own, as a pane is
            subprocess.Popen(["make"], cwd=tree, env=env, executable=_first(path), start_new_session=True)
        )
    for one in begun:
        one.wait()


def _first(path: str) -> str:
    return os.path.join(path.split(os.pathsep)[0], "make")


def _watched(on: Stage, act: Callable[[], None]) -> dict[str, str]:
    """How long it takes, and how `af status` and a key typed into a session answer meanwhile."""
    statuses, echoes, ended = list[float](), list[float](), Event()
    killed, failed = _oom_kills(), _failures(on)
    with _terminal(on) as side:
        watchers = [
            Thread(target=_again, args=(ended, 0.5, statuses, lambda: on.run(AF, "status"))),
            Thread(target=_again, args=(ended, 0.1, echoes, lambda: _echo(side))),
        ]
        for watcher in watchers:
            watcher.start()
        begun = time.perf_counter()
        act()
        spent = time.perf_counter() - begun
        ended.set()
        for watcher in watchers:
            watcher.join()
    return {
        "makespan": f"{spent:.1f} s",
        "af status, p95": f"{_p95(statuses) * 1000:.0f} ms",
        "keystroke echo, p95": f"{_p95(echoes) * 1000:.1f} ms",
        "ended by the kernel / failed": f"{_oom_kills() - killed} / {_failures(on) - failed}",
    }


def _again(ended: Event, pause: float, found: list[float], act: Callable[[], object]) -> None:
    """With a pause, for what asks all the time has the processors that a build would have."""
    while not ended.wait(pause):
        begin = time.perf_counter()
        act()
        found.append(time.perf_counter() - begin)


@contextmanager
def _terminal(on: Stage) -> Iterator[int]:
    """A session that says what is typed, on a terminal whose other end is here."""
    side, inner = pty.openpty()
    words = ["tmux", "new-session", "-A", "-s", "typed", "cat"]
    client = subprocess.Popen(
        words, env=dict(on.env), stdin=inner, stdout=inner, stderr=inner, start_new_session=True
    )
    os.close(inner)
    while select.select([side], [], [], 1.0)[0]:  # until it has drawn its screen
        os.read(side, 1 << 16)
    try:
        yield side
    finally:
        on.run("tmux", "kill-session", "-t", "typed")
        client.wait()
        os.close(side)


def _echo(side: int) -> None:
    while select.select([side], [], [], 0)[0]:  # what the status line has drawn meanwhile
        os.read(side, 1 << 16)
    os.write(side, b"x")
    if not select.select([side], [], [], 30)[0]:
        sys.exit("A key was not echoed within 30 s")


def _p95(values: list[float]) -> float:
    return quantiles(values, n=20)[-1] if len(values) > 1 else sum(values)


def _oom_kills() -> int:
    counts = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return int(counts.get("oom_kill", 0))


def _failures(on: Stage) -> int:
    file = on.directory / "failed"
    return len(file.read_text().splitlines()) if file.exists() else 0


if __name__ == "__main__":
    main()
