"""The program of a builder's pane: prepares the tree, runs the runtime, reports how it ended, leaves a shell.

Run as a file: `python -I -S launcher.py <session> <run directory in hex>`. `af` finds the pane by the
session's name in it. It uses the standard library and this room only.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # run as a file: only the standard library is on the path so far
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from agent_farm.pane.plain_start import FROM_THE_PANE, start_plainly

if __name__ == "__main__":  # before anything is loaded that is not needed for this
    start_plainly(__file__)

from agent_farm.pane.builder_run import run_builder
from agent_farm.pane.launchfile import NotLaunchable, Plan, load_plan
from agent_farm.pane.pane_terminal import say
from agent_farm.pane.shell import become_shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main(argv: list[str]) -> None:
    try:
        plan = load_plan(os.fsdecode(bytes.fromhex(argv[1])))
    except (NotLaunchable, ValueError) as error:
        _end(str(error), None)
    if plan.env is None:
        _end(f"{plan.builder} was started from here already.", plan)
    run_builder(plan, plan.env | {name: os.environ[name] for name in FROM_THE_PANE if name in os.environ})


def _end(message: str, plan: Plan | None) -> NoReturn:
    """For a respawned pane: the environment to start the runtime in is gone, so only a shell is left."""
    say(f"[agent-farm] {message}")
    if plan is None:
        sys.exit(1)
    say(f"[agent-farm] continue, from another terminal: af resume {plan.builder}")
    become_shell(plan.shell, plan.worktree, dict(os.environ))


if __name__ == "__main__":
    main(sys.argv[1:])
