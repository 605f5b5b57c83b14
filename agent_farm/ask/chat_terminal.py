"""Runs an agent in the user's own terminal, in the foreground process group."""

from __future__ import annotations

import signal
import subprocess

from agent_farm.ask.clean_end import undisturbed
from agent_farm.descendants import adopt_orphans, end_children, live_children
from agent_farm.errors import AgentFarmError
from agent_farm.launch import Launch

_GRACE_SECONDS = 3.0


def run_in_terminal(launch: Launch) -> int:
    """Exit code of the agent, which gets our stdin, stdout and stderr; negative if a signal ended it.

    Keys that interrupt or suspend reach the agent; they suspend this process only as far as the shell needs
    it stopped. In the end nothing of the agent is left running (on Linux; elsewhere only the agent itself is
    ended).
    """
    before = signal.signal(signal.SIGINT, lambda number, frame: None)  # the agent would inherit SIG_IGN
    others = live_children()
    adopts = adopt_orphans(True)
    try:
        child = subprocess.Popen(launch.argv, cwd=launch.cwd, env=dict(launch.env))
    except OSError as error:
        raise AgentFarmError(f"{launch.argv[0]} cannot be started", why=error.strerror) from error
    else:
        try:
            return child.wait()
        finally:
            with undisturbed():
                _end(child, others if adopts else None)
    finally:
        signal.signal(signal.SIGINT, before)


def _end(child: subprocess.Popen[bytes], others: list[int] | None) -> None:
    """`others` are children that this process had before; None where orphans are not handed to it."""
    if others is not None:
        end_children(_GRACE_SECONDS, spare=others)
        adopt_orphans(False)
    elif child.poll() is None:
        child.terminate()
        try:
            child.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
