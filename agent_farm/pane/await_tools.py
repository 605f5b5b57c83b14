"""Holds a CLI's first prompt until the farm's server has told it its tools: it does not wait for them.

`await_tools.py <run directory> <run> <seconds>`, as a hook. Never fails the runtime: it ends with 0, and
after that many seconds in any case, for a server that is dead.
"""

from __future__ import annotations

import os
import sys
import time

if __name__ == "__main__":  # started as a file: nothing but the standard library is on the path yet
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from agent_farm.lean import suppress
from agent_farm.pane.journal import TOOLS_TOLD, has_event

_POLL_SECONDS = 0.05
_SETTLE_SECONDS = 0.1  # the server notes it, and then answers


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
