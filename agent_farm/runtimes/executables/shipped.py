"""Where the shipped executables are, and how they are started."""

from __future__ import annotations

import sys
from pathlib import Path

# name -> the runtime whose CLI it starts
EXECUTABLES = {"claude-mcp": "claude-code", "codex-cli": "codex", "github-copilot": "copilot"}
# What it may do beyond what `edit` allows: headless there is nobody to ask, and it runs commands.
ALSO_ALLOWED = {"github-copilot": ("--allow-all-tools",)}


def executable_path(name: str) -> Path:
    """The file of a shipped adapter; ValueError listing the names when there is none."""
    if name not in EXECUTABLES:
        raise ValueError(f"No adapter {name!r}. There are: {', '.join(EXECUTABLES)}")
    return Path(__file__).with_name(name)


def executable_command(name: str) -> tuple[str, ...]:
    """Without the detour by a shell. -E -P instead of -I: the package may be installed for the user only."""
    return (sys.executable, "-E", "-P", "-m", "agent_farm.runtimes.executables", name)
