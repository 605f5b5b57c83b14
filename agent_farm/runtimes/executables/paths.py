"""Where the shipped executables are."""

from __future__ import annotations

from pathlib import Path

EXECUTABLES = ("claude-mcp", "codex-cli", "github-copilot")


def executable_path(name: str) -> Path:
    """The file of a shipped adapter; ValueError listing the names when there is none."""
    if name not in EXECUTABLES:
        raise ValueError(f"No adapter {name!r}. There are: {', '.join(EXECUTABLES)}")
    return Path(__file__).with_name(name)
