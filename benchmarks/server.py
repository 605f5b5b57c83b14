"""What the farm's server costs `af spawn`: one that has to be started, against one that runs."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time

from benchmarks.stage import AF, Rows, Stage, difference, ratio, settle, spread, stage

ROUNDS = 12
ENSURE = (
    "import sys, time; from pathlib import Path;"
    "from agent_farm import loopback; from agent_farm.sessions import butlers;"
    "from agent_farm.server.launching import ensure_server; root = Path(sys.argv[1]);"
    "begin = time.perf_counter(); ensure_server(root); print(time.perf_counter() - begin)"
)


def main() -> Rows:
    with stage() as on:
        numbers = itertools.count()
        times: dict[str, list[float]] = {"none": [], "running": [], "cold": []}
        for _ in range(ROUNDS):  # they take turns, so that neighbours disturb all alike
            _stop(on)
            times["none"].append(_spawn(on, next(numbers), server=False))
            times["cold"].append(_spawn(on, next(numbers), server=True))
            _wait_until_up(on)
            times["running"].append(_spawn(on, next(numbers), server=True))
        _stop(on)
        cold = float(on.run(sys.executable, "-c", ENSURE, on.repository))
        _wait_until_up(on)
        warm = float(on.run(sys.executable, "-c", ENSURE, on.repository))
    yield "af spawn without a server, s", spread(times["none"])
    yield "af spawn that starts the server / without", ratio(times["cold"], times["none"])
    yield "af spawn with a server that runs / without", ratio(times["running"], times["none"])
    yield "starting the server adds, s", difference(times["cold"], times["running"])
    yield "ensure_server, cold and warm, ms", f"{cold * 1000:.1f} and {warm * 1000:.2f}"


def _spawn(on: Stage, number: int, *, server: bool) -> float:
    env = {**on.env, "AF_SERVER": "on" if server else "off"}
    begin = time.perf_counter()
    done = subprocess.run(
        [AF, "spawn", "--runtime", "demo", f"[[say:{number}]]"],
        cwd=on.repository,
        env=env,
        capture_output=True,
    )
    spent = time.perf_counter() - begin
    if done.returncode:
        sys.exit(done.stderr.decode())
    settle(on)
    return spent


def _stop(on: Stage) -> None:
    subprocess.run([AF, "butler", "stop"], cwd=on.repository, env=dict(on.env), capture_output=True)


def _wait_until_up(on: Stage) -> None:
    on.run(AF, "butler", "start")
