"""Ways to kill what carries out a command, at each of its steps until it has no more.

A way is called with a step and the words of the command. It tells at which step it killed, or None where the
command came to its end.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.farm.stopping import killed, number_in

Kill = Callable[[int | str, tuple[str, ...]], str | None]
_MOST_STEPS = 400


def kill_af(repo: Path) -> Kill:
    def kill(step: int | str, words: tuple[str, ...]) -> str | None:
        done = killed(repo, step, *words)
        if done.returncode == 0:
            return None
        assert done.returncode == -signal.SIGKILL, done
        return done.stderr

    return kill


def each_step(kill: Kill, first: int | str, *words: str) -> Iterator[str]:
    """Killed at the step that `first` names, at the next, …, until it gets to its end."""
    what = kill(first, words)
    while what is not None:
        yield what
        step = number_in(what) + 1
        assert step < _MOST_STEPS, "the walk does not end"
        what = kill(step, words)
