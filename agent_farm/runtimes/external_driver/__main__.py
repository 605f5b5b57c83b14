"""The process that drives an external executable; standard library only, started by path."""

from __future__ import annotations

import json
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[3]))  # with -I, Python does not find the package

    from agent_farm.descendants import adopt_orphans, end_children
    from agent_farm.runtimes.external_driver.adapter_commands import DrivenSession

    mode, file = sys.argv[1:3]
    session = DrivenSession(**json.loads(Path(file).read_text(encoding="utf-8")))
    adopt_orphans(True)  # sessions run in the background: what remains of them is ended with us (Linux)
    try:
        if mode == "headless":
            from agent_farm.runtimes.external_driver.driver_headless import run_headless

            sys.exit(run_headless(session))

        from agent_farm.runtimes.external_driver.driver_pane import run_interactive

        sys.exit(run_interactive(session))
    finally:
        end_children(3.0)
