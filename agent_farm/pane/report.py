"""What a runtime's hook calls: records one event in the builder's journal, and notifies a person if it waits.

`report.py [--json-reply] <run directory> <run> <event or ->`, with the hook's payload as JSON on stdin.
It never fails the runtime: it exits with 0 and prints nothing but the `{}` that some runtimes want.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # Python compiles a file it runs each time, so the rest is elsewhere
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from agent_farm.lean import suppress
from agent_farm.pane.hook_event import main

if __name__ == "__main__":
    with suppress(Exception):
        main(sys.argv[1:])
