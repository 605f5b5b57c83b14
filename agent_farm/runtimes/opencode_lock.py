"""opencode reads ~/.opencode whatever it is told; here is what switches its MCP servers off by name."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

_OFF = {"type": "remote", "url": "http://localhost:1/mcp", "enabled": False}


def foreign_servers(home: Path) -> dict[str, dict[str, Any]]:
    """Each MCP server of ~/.opencode/opencode.json(c), disabled."""
    names: list[str] = []
    for file in ("opencode.json", "opencode.jsonc"):
        with suppress(OSError, ValueError, AttributeError):
            text = (home / ".opencode" / file).read_text(encoding="utf-8")
            names += json.loads(without_comments(text)).get("mcp") or {}
    return dict.fromkeys(names, _OFF)


def without_comments(text: str) -> str:
    """JSON from JSON with comments and trailing commas; strings stay as they are."""
    kept = re.sub(
        r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', lambda found: found[1] or "", text, flags=re.DOTALL
    )
    return re.sub(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', lambda found: found[1] or "", kept)
