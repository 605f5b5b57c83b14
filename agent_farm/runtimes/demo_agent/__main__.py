from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[3]))  # -I: nothing else finds the package

    from agent_farm.runtimes.demo_agent.arguments import UnknownArgument, parse_arguments

    try:
        arguments = parse_arguments(sys.argv[1:])
    except UnknownArgument as error:
        sys.stderr.write(f"demo: {error}\n")
        sys.exit(2)
    if arguments.mode == "headless":
        from agent_farm.runtimes.demo_agent.headless import run_headless

        sys.exit(run_headless(arguments))

    from agent_farm.runtimes.demo_agent.interactive import run_interactive

    sys.exit(run_interactive(arguments))
