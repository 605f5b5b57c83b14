from __future__ import annotations

import sys

from agent_farm.runtimes.executables.commands import main

sys.exit(main(sys.argv[1], sys.argv[2:]))
