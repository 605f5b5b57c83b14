"""A configuration for `af ask` on top of the user's own: all MCP servers off, only the sources readable.

opencode merges all its configurations, so each server is switched off by name; model, provider and login stay
the user's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agent_farm.errors import DamagedFile
from agent_farm.runtimes.foreign import parse_jsonc

_MACHINE = (Path("/etc/opencode"), Path("/Library/Application Support/opencode"))
_FILES = ("config.json", "opencode.json", "opencode.jsonc")
_READING = ("read", "grep", "glob", "list")
_VARIABLE = re.compile(r"\{env:(\w+)\}")


def overlay(env: Mapping[str, str], directories: Sequence[str]) -> str:
    names = dict.fromkeys(name for text, path in _load(env) for name in _servers(text, path))
    outside = {"*": "deny", **{f"{directory.rstrip('/')}/*": "allow" for directory in directories}}
    return json.dumps(
        {
            "mcp": {name: {"enabled": False} for name in names},
            "permission": {"*": "deny", **dict.fromkeys(_READING, "allow"), "external_directory": outside},
        }
    )


def referenced_variables(env: Mapping[str, str]) -> tuple[str, ...]:
    """The variables that the user's configuration refers to with `{env:NAME}`."""
    return tuple(name for text, _ in _load(env) for name in _VARIABLE.findall(text))


def _load(env: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = Path(env.get("HOME", "~")).expanduser()
    user = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
    own = [Path(env[name]) for name in ("OPENCODE_CONFIG_DIR",) if env.get(name)]
    files = [directory / name for directory in (*_MACHINE, user, home / ".opencode", *own) for name in _FILES]
    files += [Path(env["OPENCODE_CONFIG"])] if env.get("OPENCODE_CONFIG") else []
    for path in files:
        try:
            yield path.read_text(encoding="utf-8", errors="replace"), path
        except OSError:
            continue


def _servers(text: str, path: Path) -> list[str]:
    try:
        document = parse_jsonc(text)
    except ValueError as error:
        raise DamagedFile(
            f"{path} cannot be read",
            why=f"{error}; its MCP servers cannot be switched off",
            hint=f"$EDITOR {path}",
        ) from error
    servers = document.get("mcp") if isinstance(document, dict) else None
    return list(servers) if isinstance(servers, dict) else []
