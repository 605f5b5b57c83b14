"""Codex merges user and project settings into a trusted session; here is what switches theirs off by name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# connectors and plugins bring MCP servers of their own
FEATURES_OFF = ("features.apps=false", "features.plugins=false")


@dataclass(frozen=True, slots=True)
class ForeignSettings:
    """Servers and hooks of others as codex has to be told of them: switched off."""

    servers: Mapping[str, Mapping[str, object]]
    hook_states: Mapping[str, Mapping[str, bool]]


def foreign_settings_off(directories: Iterable[Path], *, keep: Iterable[str]) -> ForeignSettings:
    """Each MCP server and hook configured in these `.codex` directories, disabled.

    A disabled server needs a whole definition of the same transport, or the session does not start.
    """
    servers: dict[str, Mapping[str, object]] = {}
    hooks: dict[str, dict[str, bool]] = {}
    for directory in directories:
        config = _load_toml(directory / "config.toml")
        for name, server in _table(config, "mcp_servers").items():
            if name not in keep and isinstance(server, Mapping):
                servers[name] = _dummy(server)
        hooks |= _hook_states(directory / "config.toml", _table(config, "hooks"))
        hooks |= _hook_states(directory / "hooks.json", _table(_load_json(directory / "hooks.json"), "hooks"))
    return ForeignSettings(servers, hooks)


def _dummy(server: Mapping[str, Any]) -> Mapping[str, object]:
    transport = {"url": "http://localhost:1/mcp"} if "url" in server else {"command": "true"}
    return {**transport, "enabled": False, "required": False}


def _hook_states(source: Path, hooks: Mapping[str, Any]) -> dict[str, dict[str, bool]]:
    """Codex's own names for hooks: file, event, group and place in the group."""
    found = {}
    for event, groups in hooks.items():
        for number, group in enumerate(groups if isinstance(groups, list) else ()):
            inner = group.get("hooks") if isinstance(group, Mapping) else None
            for place in range(len(inner) if isinstance(inner, list) else 0):
                found[f"{source}:{_snake(event)}:{number}:{place}"] = {"enabled": False}
    return found


def _snake(event: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()


def _table(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = config.get(name)
    return table if isinstance(table, Mapping) else {}


def _load_toml(path: Path) -> Mapping[str, Any]:
    """Empty where there is none; one that cannot be read cannot be read by codex either."""
    import tomllib

    with suppress(OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return tomllib.loads(path.read_text(encoding="utf-8"))
    return {}


def _load_json(path: Path) -> Mapping[str, Any]:
    with suppress(OSError, ValueError):
        loaded = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(loaded, dict):
            return loaded
    return {}
