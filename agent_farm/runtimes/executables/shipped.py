"""Where the shipped executables are, and how they are started."""

from __future__ import annotations

import sys
from pathlib import Path

# name -> the runtime that it drives
EXECUTABLES = {"claude-mcp": "claude-code", "codex-cli": "codex", "github-copilot": "copilot"}
# Options that allow more than `edit` does: headless, nobody can be asked, and the agent has to run commands.
ALSO_ALLOWED = {"github-copilot": ("--allow-all-tools",)}


def executable_path(name: str) -> Path:
    """The file of a shipped adapter; ValueError with the names if there is none."""
    if name not in EXECUTABLES:
        raise ValueError(f"No adapter {name!r}. There are: {', '.join(EXECUTABLES)}")
    return Path(__file__).with_name(name)


def executable_command(name: str) -> tuple[str, ...]:
    """Starts it without a shell. -E -P instead of -I: the package may only be installed for the user."""
    return (sys.executable, "-E", "-P", "-m", "agent_farm.runtimes.executables", name)
