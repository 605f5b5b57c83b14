"""Where the shipped executables are, and how they are started."""

from __future__ import annotations

import sys
from pathlib import Path

# name -> the runtime that starts the same CLI, whose keys it may have
EXECUTABLES = {"claude-mcp": "claude-code", "codex-cli": "codex", "github-copilot": "copilot"}


def executable_path(name: str) -> Path:
    """The file of a shipped adapter; ValueError listing the names when there is none."""
    if name not in EXECUTABLES:
        raise ValueError(f"No adapter {name!r}. There are: {', '.join(EXECUTABLES)}")
    return Path(__file__).with_name(name)


def executable_command(name: str) -> tuple[str, ...]:
    """Under the Python that runs af: the `python3` that its first line asks for may be too old for it."""
    return (sys.executable, "-I", "-S", str(executable_path(name)))
