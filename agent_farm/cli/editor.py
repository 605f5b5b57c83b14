"""`af acp`."""

from __future__ import annotations

import os
import stat
import sys

import click

from agent_farm.cli.completing import complete_runtimes
from agent_farm.cli.options import tell_who_is_awaited
from agent_farm.errors import UsageError
from agent_farm.runtimes.cli import PERMISSIONS


@click.command()
@click.option("--runtime", metavar="NAME", help="Runtime of new builders.", shell_complete=complete_runtimes)
@click.option("--model", metavar="NAME", help="Model of new builders.")
@click.option(
    "--permissions", type=click.Choice(PERMISSIONS), help="What new builders may do without asking."
)
def acp(runtime: str | None, model: str | None, permissions: str | None) -> None:
    """Serve builders to an editor that speaks the Agent Client Protocol, over stdio.

    A session of the editor is a builder of the repository it is opened in: its first message spawns one,
    the others are sent to it, cancelling interrupts it. The builder stays when the editor is closed.

    \b
      Zed, settings.json:
        {"agent_servers": {"agent-farm":
          {"type": "custom", "command": "af", "args": ["acp"]}}}
      JetBrains, ~/.jetbrains/acp.json:
        {"agent_servers": {"agent-farm": {"command": "af", "args": ["acp"]}}}
    """
    if sys.stdin is None or not (sys.stdin.isatty() or _is_pipe(sys.stdin.fileno())):
        raise UsageError(
            "Standard input is no pipe", why="An editor starts af acp with one.", hint="af acp --help"
        )
    tell_who_is_awaited("an editor")
    import asyncio

    from agent_farm.server.editor_door import EditorAgent
    from agent_farm.server.editor_words import serve_editor

    order = {"runtime": runtime, "model": model, "permissions": permissions}
    given = {name: value for name, value in order.items() if value is not None}
    asyncio.run(serve_editor(EditorAgent(given, dict(os.environ))))


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
