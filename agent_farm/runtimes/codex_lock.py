"""Switches off, by name, the user and project settings that codex merges into a session."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_farm.errors import DamagedFile
from agent_farm.runtimes.bounded_run import run_bounded
from agent_farm.runtimes.foreign import load_json, load_toml, table

KEYS = ("CODEX_API_KEY", "OPENAI_API_KEY")
_MACHINE = Path("/etc/codex/config.toml")
_SECONDS = 5.0
_CATALOG = ("debug", "models", "--bundled")


def config_home(env: Mapping[str, str]) -> Path:
    return Path(env.get("CODEX_HOME") or Path(env.get("HOME", os.sep)) / ".codex")


def key_of(env: Mapping[str, str]) -> str | None:
    """The variable with a key; if there is one, a private configuration home is safe."""
    return next((name for name in KEYS if env.get(name)), None)


@dataclass(frozen=True, slots=True)
class ForeignSettings:
    """Other people's servers and hooks, in the form in which codex takes them as switched off."""

    servers: Mapping[str, Mapping[str, object]]
    hook_states: Mapping[str, Mapping[str, bool]]


def foreign_settings_off(directories: Iterable[Path], *, keep: Iterable[str]) -> ForeignSettings:
    """Every MCP server and hook configured in these `.codex` directories, disabled.

    A disabled server needs a complete definition with the same transport, or the session does not start.
    """
    servers: dict[str, Mapping[str, object]] = {}
    hooks: dict[str, dict[str, bool]] = {}
    for directory in directories:
        config = load_toml(directory / "config.toml")
        for name, server in table(config, "mcp_servers").items():
            if name not in keep and isinstance(server, Mapping):
                servers[name] = _dummy(server)
        hooks |= _hook_states(directory / "config.toml", table(config, "hooks"))
        hooks |= _hook_states(directory / "hooks.json", table(load_json(directory / "hooks.json"), "hooks"))
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


def servers_off(env: Mapping[str, str]) -> str:
    """For `af ask`: every server that the user or the machine configured, disabled, as one inline table."""
    names = dict.fromkeys(
        name for document in _configurations(env) for name in table(document, "mcp_servers")
    )
    return inline_toml({name: {"enabled": False} for name in names})


def provider_keys(env: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the variables with keys for the user's own providers."""
    names: list[str] = []
    for document in _configurations(env):
        for provider in table(document, "model_providers").values():
            if isinstance(provider, Mapping):
                found = (provider.get("env_key"), *table(provider, "env_http_headers").values())
                names += [name for name in found if isinstance(name, str)]
    return tuple(names)


def _configurations(env: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    """An unreadable file is an error: codex might still be able to read it, and its servers."""
    import tomllib

    for path in (_MACHINE, config_home(env) / "config.toml"):
        try:
            yield tomllib.loads(path.read_bytes().decode())
        except OSError:
            continue
        except ValueError as error:
            raise DamagedFile(
                f"{path} is not valid TOML",
                why=f"{error}; its MCP servers cannot be switched off",
                hint=f"$EDITOR {path}",
            ) from error


def offered_models(command: Sequence[str], env: Mapping[str, str], home: Path) -> dict[str, str]:
    """Maps a model to the newer one that codex offers at start, in a dialog where Enter would accept.

    An offer that is marked as seen is not made. codex itself tells which there are: in the catalog inside its
    program, and in a newer one that it fetches when logged in.
    """
    offers = _offers(_bundled(command, {**env, "CODEX_HOME": str(home)}))
    return offers if key_of(env) else offers | _offers(load_json(config_home(env) / "models_cache.json"))


def _bundled(command: Sequence[str], env: Mapping[str, str]) -> Mapping[str, Any]:
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        done = run_bounded([*command, *_CATALOG], cwd="/", env=env, seconds=_SECONDS)
        loaded = {} if done.returncode else json.loads(done.stdout)
        return loaded if isinstance(loaded, dict) else {}
    return {}


def _offers(catalog: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    with suppress(KeyError, TypeError):  # another version has another form
        for model in catalog.get("models") or ():
            if offer := model.get("upgrade"):
                found[str(model["slug"])] = str(offer["model"])
    return found


def inline_toml(value: object) -> str:
    """A str, bool, number, list or mapping on one line; tomli-w only writes whole documents."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Mapping):
        pairs = (f"{inline_toml(str(key))}={inline_toml(inner)}" for key, inner in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(inline_toml(inner) for inner in value) + "]"
    raise TypeError(f"no TOML for {type(value).__name__}")
