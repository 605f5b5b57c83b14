from __future__ import annotations

import json
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[3]))  # -I: nothing else finds the package

    from agent_farm.runtimes.external_driver.contract import Order

    mode, file = sys.argv[1:3]
    order = Order(**{"hook": (), **json.loads(Path(file).read_text(encoding="utf-8"))})
    if mode == "headless":
        from agent_farm.runtimes.external_driver.headless import run_headless

        sys.exit(run_headless(order))

    from agent_farm.runtimes.external_driver.interactive import run_interactive

    sys.exit(run_interactive(order))
