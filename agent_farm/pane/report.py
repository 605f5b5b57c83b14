"""What a runtime's hook calls: one event into the builder's journal, and a word to a person when it waits.

`report.py [--json-reply] <run directory> <run> <event or ->`, the hook's payload as JSON on stdin.
Never fails the runtime: it ends with 0 and prints nothing but the `{}` that some runtimes ask for.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # started as a file, which Python compiles each time: the rest is elsewhere
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from agent_farm.lean import suppress
from agent_farm.pane.hook_event import main

if __name__ == "__main__":
    with suppress(Exception):
        main(sys.argv[1:])
