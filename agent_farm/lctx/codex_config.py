"""What the user's codex configuration names: MCP servers to switch off, and variables its providers need.

`-c mcp_servers={…}` merges into the user's table, so each server is switched off by its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_farm.errors import DamagedFile

_MACHINE = Path("/etc/codex/config.toml")


def servers_off(env: Mapping[str, str]) -> str:
    """A TOML inline table with every configured server disabled."""
    names = dict.fromkeys(name for document in _load(env) for name in _table(document, "mcp_servers"))
    return "{" + ", ".join(f"{_key(name)}={{enabled=false}}" for name in names) + "}"


def provider_keys(env: Mapping[str, str]) -> tuple[str, ...]:
    """The names of variables that hold the keys of the user's own providers."""
    names: list[str] = []
    for document in _load(env):
        for provider in _table(document, "model_providers").values():
            if isinstance(provider, dict):
                found = (provider.get("env_key"), *_table(provider, "env_http_headers").values())
                names += [name for name in found if isinstance(name, str)]
    return tuple(names)


def _load(env: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    home = Path(env.get("CODEX_HOME") or Path(env.get("HOME", "~")).expanduser() / ".codex")
    for path in (_MACHINE, home / "config.toml"):
        try:
            data = path.read_bytes()
        except OSError:
            continue
        import tomllib

        try:
            yield tomllib.loads(data.decode())
        except ValueError as error:
            raise DamagedFile(
                f"{path} is not valid TOML",
                why=f"{error}; its MCP servers cannot be switched off",
                hint=f"$EDITOR {path}",
            ) from error


def _table(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = document.get(name, {})
    return table if isinstance(table, dict) else {}


def _key(name: str) -> str:
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
