"""Holds a CLI's first prompt until the farm's server has listed its tools: the CLI itself does not wait.

`await_tools.py <run directory> <run> <seconds>`, run as a hook. It never fails the runtime: it exits with 0,
and after that many seconds at the latest, in case the server is dead.
"""

from __future__ import annotations

import os
import sys
import time

if __name__ == "__main__":  # run as a file: only the standard library is on the path so far
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from agent_farm.lean import suppress
from agent_farm.pane.journal import TOOLS_TOLD, has_event

_POLL_SECONDS = 0.05
_SETTLE_SECONDS = 0.1  # the server records it before it answers


def main(argv: list[str]) -> None:
    directory, run, seconds = argv[0], argv[1], float(argv[2])
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if has_event(directory, run, TOOLS_TOLD):
            time.sleep(_SETTLE_SECONDS)
            return
        time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    with suppress(Exception):
        main(sys.argv[1:])
