"""The farm's MCP server, which AF_MCP_CONFIG names, as arguments of each CLI; others are switched off."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_farm.runtimes.codex_lock import foreign_settings_off
from agent_farm.runtimes.copilot_lock import foreign_servers
from agent_farm.runtimes.environment import MCP_TOKEN
from agent_farm.runtimes.toml_inline import inline_toml
from agent_farm.runtimes.worktree_files import directories_between, top_of

CONFIG = "AF_MCP_CONFIG"


def claude_words() -> list[str]:
    """Without a farm, the servers of the project's own .mcp.json."""
    config = os.environ.get(CONFIG) or (".mcp.json" if Path(".mcp.json").is_file() else "")
    if not config:
        return ["--strict-mcp-config"]
    allowed = [f"mcp__{name}" for name in _servers(Path(config))]
    words = ["--strict-mcp-config", "--mcp-config", config]
    return [*words, "--allowedTools", *allowed] if allowed else words


def codex_words() -> list[str]:
    """Without a farm, whatever codex is configured with."""
    if CONFIG not in os.environ:
        return []
    servers = _servers(Path(os.environ[CONFIG]))
    home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
    off = foreign_settings_off([home, *(place / ".codex" for place in _places())], keep=servers)
    ours = {name: _codex_form(server) for name, server in servers.items()}
    return ["-c", f"mcp_servers={inline_toml({**off.servers, **ours})}"]


def copilot_words() -> list[str]:
    """Without a farm, whatever copilot is configured with."""
    if CONFIG not in os.environ:
        return []
    servers = _servers(Path(os.environ[CONFIG]))
    home = Path(os.environ.get("COPILOT_HOME") or Path.home() / ".copilot")
    here = Path.cwd()
    others = {*_servers(home / "mcp-config.json"), *foreign_servers(top_of(here), here)} - set(servers)
    config = {"mcpServers": {name: _copilot_form(server) for name, server in servers.items()}}
    words = ["--disable-builtin-mcps", "--additional-mcp-config", json.dumps(config)]
    return words + [word for name in sorted(others) for word in ("--disable-mcp-server", name)]


def _codex_form(server: Mapping[str, Any]) -> dict[str, object]:
    form = {"url": server["url"], "default_tools_approval_mode": "approve", "omit_tools_from": ["deferred"]}
    if "timeout" in server:
        form["tool_timeout_sec"] = server["timeout"] // 1000
    return {**form, "bearer_token_env_var": MCP_TOKEN} if server.get("headers") else form


def _copilot_form(server: Mapping[str, Any]) -> dict[str, object]:
    return {
        **{key: server[key] for key in ("type", "url", "headers", "timeout") if key in server},
        "tools": ["*"],
    }


def _places() -> list[Path]:
    return list(directories_between(top_of(Path.cwd()), Path.cwd()))


def _servers(config: Path) -> dict[str, Any]:
    """Those of a file in Claude's form; none where it cannot be read."""
    try:
        servers = json.loads(config.read_bytes())["mcpServers"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return servers if isinstance(servers, dict) else {}
