"""The demo agent's own process: standard library only, so that it starts in a few hundredths of a second.

It is run by path (`python -I -S …/demo_agent/__main__.py`), and never imported by the rest of the package.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    place = os.path.dirname(os.path.realpath(__file__))
    sys.path.append(os.path.normpath(os.path.join(place, "../../..")))  # not found by -I

    from agent_farm.runtimes.demo_agent.arguments import parse_arguments
    from agent_farm.runtimes.demo_agent.conversation import UnknownConversation

    arguments = parse_arguments(sys.argv[1:])
    try:
        if arguments.mode == "headless":
            from agent_farm.runtimes.demo_agent.demo_headless import run_headless

            sys.exit(run_headless(arguments))

        from agent_farm.runtimes.demo_agent.demo_pane import run_interactive

        sys.exit(run_interactive(arguments))
    except UnknownConversation as error:
        sys.exit(f"demo: {error}")
