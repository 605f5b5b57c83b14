"""Copilot adds the project's MCP servers in a trusted folder; here are their names, to be switched off."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from agent_farm.runtimes.worktree_files import directories_between

FILES = (".mcp.json", ".github/mcp.json", ".vscode/mcp.json", ".copilot/mcp-config.json")


def foreign_servers(top: Path, cwd: Path) -> tuple[str, ...]:
    names: list[str] = []
    for directory in directories_between(top, cwd):
        for file in FILES:
            with suppress(OSError, ValueError, AttributeError):
                document = json.loads((directory / file).read_text(encoding="utf-8"))
                names += {**(document.get("mcpServers") or {}), **(document.get("servers") or {})}
    return tuple(dict.fromkeys(names))
