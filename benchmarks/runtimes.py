"""From `af spawn` to the input line of a real CLI, against the same CLI started by itself in tmux."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping

from agent_farm.farm.stale_status import label_screen
from agent_farm.launch import Launch
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.cli import Start
from agent_farm.runtimes.environment import allowed_environment
from benchmarks.stage import AF, Rows, Stage, difference, ratio, spread, stage, turns
from tests.fake_api import fake_api
from tests.runtimes.real.clis import BIN, CLIS, Cli

BAR_SECONDS, BAR_OVER_OWN = 5.0, 0.5
ROUNDS = 5
_LIMIT = 60.0


def main() -> Rows:
    found = [cli for cli in CLIS.values() if (BIN / cli.adapter.binary_name).exists()]
    if not found:
        return [("left out", "none installed; run sh tests/install_runtimes.sh")]
    with fake_api() as api, stage() as on:
        return [_row(on, cli, {**on.env, **cli.environment(api)}) for cli in found]


def _row(on: Stage, cli: Cli, env: Mapping[str, str]) -> tuple[str, object]:
    on = Stage(on.directory, env)
    (on.repository / "agent-farm.toml").write_text(f"[env]\npass = {json.dumps(list(cli.keys))}\n")
    builders = _builders(on, cli)
    alone = _alone(on, cli)
    times = turns(
        {"af": lambda: next(builders), "own": lambda: next(alone)},
        rounds=ROUNDS,
        after=lambda: on.run("tmux", "kill-server"),
    )
    over, times_own = difference(times["af"], times["own"]), ratio(times["af"], times["own"])
    return (
        f"input line of {cli.name}",
        f"{spread(times['af'])} s, +{over} s and {times_own} × its own start"
        f" (bar {BAR_SECONDS:g} s, else +{BAR_OVER_OWN:g} s)",
    )


def _builders(on: Stage, cli: Cli) -> Iterator[None]:
    model = ("--model", cli.model) if cli.model else ()
    while True:
        spawned = json.loads(on.run(AF, "spawn", "--shell", "--json", "--runtime", cli.name, *model))
        _wait_for_input(on, spawned["builder"]["session"], cli.adapter)
        yield


def _alone(on: Stage, cli: Cli) -> Iterator[None]:
    """The same program in the same state, with no farm around it: no launcher, hooks, server or role."""
    adapter, number = cli.adapter, 0
    while True:
        number += 1
        directory = on.directory / f"alone-{adapter.name}-{number}"
        own = adapter.cli.own_variables(on.env, cli.model)
        start = Start(
            mode="pane",
            env=allowed_environment(on.env, key_names=own, declared=cli.keys),
            cwd=on.repository,
            home=directory,
            place=directory,
            top=on.repository,
            run="0" * 12,
            report=("true",),
            model=cli.model,
        )
        launch = adapter.interactive(start)
        for file in launch.files:
            file.path.parent.mkdir(parents=True, exist_ok=True)
            file.path.write_text(file.content)
        _start(on, f"alone-{number}", launch)
        _wait_for_input(on, f"alone-{number}", adapter)
        yield
        shutil.rmtree(directory, ignore_errors=True)


def _start(on: Stage, session: str, launch: Launch) -> None:
    words = [f"{name}={value}" for name, value in launch.env.items()]
    size = ("-x", "200", "-y", "50")
    on.run("tmux", "new-session", "-d", "-s", session, *size, "--", "env", "-i", *words, *launch.argv)


def _wait_for_input(on: Stage, session: str, adapter: RuntimeAdapter) -> None:
    capture = ["tmux", "capture-pane", "-e", "-p", "-t", f"={session}:"]
    deadline = time.monotonic() + _LIMIT
    while time.monotonic() < deadline:
        shown = subprocess.run(capture, env=dict(on.env), capture_output=True, text=True).stdout
        if label_screen(shown, adapter.cli.screen)[0] == "ready":
            return
        time.sleep(0.02)
    raise TimeoutError(f"{session}: no input line in {_LIMIT:g} s:\n{shown}")
