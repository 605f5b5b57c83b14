"""The program of a builder's pane: prepares the tree, runs the runtime, says how it ended, leaves a shell.

Started as a file, `python -I -S launcher.py <session> <run directory in hex>`: the session's name is there
for `af` to find the pane by. Standard library only; of this package it sees this room and nothing else.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

if __name__ == "__main__":  # started as a file: nothing but the standard library is on the path yet
    sys.path.append(str(Path(__file__).resolve().parents[2]))

from agent_farm.pane.builder_run import run_builder
from agent_farm.pane.launchfile import NotLaunchable, Plan, load_plan
from agent_farm.pane.pane_terminal import say
from agent_farm.pane.shell import become_shell

# What only the pane knows; everything else comes from launch.json.
_FROM_THE_PANE = ("TERM", "COLORTERM", "TMUX", "TMUX_PANE")
# What the launcher itself lives under: keys and tokens are for the runtime, and for nobody's /proc before.
_FOR_ITSELF = ("PATH", "HOME", "USER", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", *_FROM_THE_PANE)


def main(argv: list[str]) -> None:
    session, directory, *stage = argv
    try:
        plan = load_plan(Path(os.fsdecode(bytes.fromhex(directory))))
    except (NotLaunchable, ValueError) as error:
        _end(str(error), None)
    if plan.env is None:
        _end(f"{plan.builder} was started from here already.", plan)
    env = plan.env | {name: os.environ[name] for name in _FROM_THE_PANE if name in os.environ}
    if not stage:
        own = {name: value for name, value in env.items() if name in _FOR_ITSELF}
        _start_again(own, session, directory)
    run_builder(plan, env)


def _start_again(env: dict[str, str], session: str, directory: str) -> None:
    """Under a few plain names, so that not even /proc/<launcher>/environ holds a key."""
    again = [sys.executable, "-I", "-S", "-X", "utf8", os.path.abspath(__file__), session, directory, "clean"]
    os.execve(again[0], again, env)


def _end(message: str, plan: Plan | None) -> NoReturn:
    """A pane that somebody respawned: no environment is left to start anything in but a shell."""
    say(f"[agent-farm] {message}")
    if plan is None:
        sys.exit(1)
    say(f"[agent-farm] go on:   af resume {plan.builder}")
    become_shell(plan.shell, plan.worktree, dict(os.environ))


if __name__ == "__main__":
    main(sys.argv[1:])
