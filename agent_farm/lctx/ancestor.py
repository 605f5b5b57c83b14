"""The configuration that lctx itself writes to the same place, read as ours and written back as its own.

{"sourcesDirectory": "…", "sources": [{"name": "app", "type": "directory", "path": "…"}],
 "agents": {"claude-code": {"commands": {"ask": "…", "chat": "…"}, "addDirFlag": "--add-dir {path}"}}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def sources_as_mapping(sources: Any) -> Any:
    """A list of entries with names as a mapping; anything else as it is, to be checked by who reads it."""
    if not isinstance(sources, list):
        return sources
    named = [entry for entry in sources if isinstance(entry, Mapping) and isinstance(entry.get("name"), str)]
    return {entry["name"]: {key: value for key, value in entry.items() if key != "name"} for entry in named}


def sources_as_found(before: Any, sources: Mapping[str, Any]) -> Any:
    """In the form the file had, so that lctx goes on reading it."""
    if not isinstance(before, list):
        return sources
    return [{"name": name, **entry} for name, entry in sources.items()]


def agent_as_ours(entry: Any) -> Any:
    """`commands.ask`, `commands.chat` and `addDirFlag` as ours; the empty MCP files are made in any case."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("commands"), Mapping):
        return entry
    kept = {key: value for key, value in entry.items() if key not in ("commands", "addDirFlag", "mcp")}
    flag = entry.get("addDirFlag")
    return {**kept, **entry["commands"], **({"each_source": flag} if flag is not None else {})}
