"""`python stop_at.py SIGNAL N ARG…`: the real `af ARG…`, which sends itself SIGNAL just before its N-th step.

N may also be a word: then it is the first step that names it.

A step is whatever the interpreter announces about the world outside: a file opened for writing, renamed,
removed or locked, a directory made, a program started. The product knows nothing of it.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, TextIO

_STEPS = frozenset(
    {
        "fcntl.flock",
        "os.chmod",
        "os.link",
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.truncate",
        "shutil.move",
        "shutil.rmtree",
        "socket.connect",
        "subprocess.Popen",
    }
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def stop_at(wanted: str, which: signal.Signals, tell: TextIO = sys.stderr, *, victim: int = 0) -> None:
    """`victim` is the process that gets the signal: this one, unless it is another."""
    seen = 0
    stopped = False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen, stopped
        if event not in _STEPS and not (event == "open" and _writes(*arguments)):
            return
        seen += 1
        where = f"{event} {arguments!r:.900}"
        if stopped or not (seen == int(wanted) if wanted.isdecimal() else wanted in where):
            return
        stopped = True
        tell.write(f"stopped before step {seen}: {where}\n")
        tell.flush()
        if which == signal.SIGINT:
            os.killpg(0, which)  # as a terminal does: the children get it too
        else:
            os.kill(victim or os.getpid(), which)

    sys.addaudithook(hook)


def _writes(path: object, mode: object, flags: object) -> bool:
    """A file, not a descriptor that is wrapped or the way to nowhere."""
    if isinstance(path, int) or path == os.devnull:
        return False
    return isinstance(flags, int) and bool(flags & _WRITES)


if __name__ == "__main__":
    from agent_farm.cli.main import main

    chosen, step, *words = sys.argv[1:]
    stop_at(step, signal.Signals[chosen])
    main(words)
