"""`agent-farm.toml`, checked key by key; every value knows where it comes from."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_farm.errors import AgentFarmError, nearest
from agent_farm.paths import SETTINGS_NAME

PERMISSIONS = ("ask", "edit", "all")
STRATEGIES = ("merge", "squash", "rebase", "ff")
_TRUE = frozenset({"1", "true", "yes", "on"})


class SettingsError(AgentFarmError):
    code = "settings"


@dataclass(frozen=True, slots=True)
class Key:
    """One setting: its TOML name, what it takes, and one line for `docs/settings.md`."""

    name: str
    kind: type
    default: Any
    text: str
    choices: tuple[str, ...] = ()
    minimum: int = 0
    env: str | None = None


NOTIFIED = ("waiting", "exited", "failed")
KEYS = (
    Key("spawn.runtime", str, None, "Runtime of a builder; without it the first usable one"),
    Key("spawn.model", str, None, "Model for the default runtime; without it that runtime's own default"),
    Key("spawn.base", str, None, "Revision builders start from; without it HEAD of the current checkout"),
    Key("spawn.permissions", str, "edit", "What a builder may do without asking", choices=PERMISSIONS),
    Key("worktree.copy", list, (), "Ignored files to copy into a new worktree, as in .gitignore"),
    Key("worktree.setup", str, None, "Command run by sh in a new worktree before the runtime starts"),
    Key("worktree.carry", bool, False, "Give uncommitted changes of the current checkout to a new builder"),
    Key("ports.per_builder", int, 10, "Ports reserved for each builder; AF_PORT is the first"),
    Key("env.pass", list, (), "Names of further environment variables that builders may see"),
    Key("tmux.socket", str, None, "tmux server: a name, or a path with a slash", env="AF_TMUX_SOCKET"),
    Key("merge.strategy", str, "merge", "How `af merge` lands a branch", choices=STRATEGIES),
    Key("merge.check", str, None, "Command run by sh in the builder's worktree before its branch lands"),
    Key("limits.max_builders", int, 0, "Most builders that run at once; 0 sets no limit"),
    Key("notify.command", str, None, "Command run by sh when a builder enters a state of notify.on"),
    Key("notify.on", list, NOTIFIED, "States that notify.command tells of", choices=(*NOTIFIED, "idle")),
    Key("pool.size", int, 0, "Worktrees kept ready for the next spawns"),
    Key("server.enabled", bool, True, "Builders get the farm's MCP server", env="AF_SERVER"),
    Key("server.port", int, 0, "Port of the farm's server; 0 chooses one and keeps it"),
)
RUNTIME_KEYS = (
    Key("command", str, None, "Program to run instead of the runtime's own"),
    Key("args", list, (), "Further arguments"),
    Key("model", str, None, "Model for this runtime"),
    Key("permissions", str, None, "Permissions for this runtime", choices=PERMISSIONS),
)


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    command: str | None = None
    args: tuple[str, ...] = ()
    model: str | None = None
    permissions: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    values: Mapping[str, Any]
    sources: Mapping[str, str]
    runtimes: Mapping[str, RuntimeSettings] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        value = self.values[name]
        return None if value is None else str(value)

    def number(self, name: str) -> int:
        return int(self.values[name])

    def flag(self, name: str) -> bool:
        return bool(self.values[name])

    def items(self, name: str) -> tuple[str, ...]:
        return tuple(self.values[name])

    def source(self, name: str) -> str:
        """`default`, the name of the file, or the environment variable."""
        return self.sources.get(name, "default")

    def runtime(self, name: str) -> RuntimeSettings:
        return self.runtimes.get(name, RuntimeSettings())


def load_settings(root: Path, environ: Mapping[str, str] | None = None) -> Settings:
    """The farm's settings; an unknown key or a value of the wrong kind is refused by name."""
    given, runtimes = check_document(load_document(root / SETTINGS_NAME))
    values: dict[str, Any] = {key.name: key.default for key in KEYS} | given
    sources = dict.fromkeys(given, SETTINGS_NAME)
    for key in KEYS:
        text = (os.environ if environ is None else environ).get(key.env) if key.env else None
        if text:
            value = text.lower() in _TRUE if key.kind is bool else text
            values[key.name], sources[key.name] = value, str(key.env)
    return Settings(values, sources, runtimes)


def check_document(document: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, RuntimeSettings]]:
    """The values and the runtimes a document sets, or a SettingsError."""
    tables = dict(document)
    runtimes = _runtimes(tables.pop("runtimes", {}))
    return {name: _checked(_key(name), value) for name, value in _flatten(tables)}, runtimes


def load_document(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    import tomllib  # 8 ms that a farm without a settings file does not pay

    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} is not valid TOML", why=str(error)) from error
    except OSError as error:
        raise SettingsError(f"Cannot read {file}", why=os.strerror(error.errno or 0)) from error


def _flatten(document: Mapping[str, Any]) -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    tables = {key.name.partition(".")[0] for key in KEYS}
    for table, content in document.items():
        if isinstance(content, Mapping):
            if not content and table not in tables:
                raise _unknown(table, sorted({*tables, "runtimes"}))
            pairs += [(f"{table}.{name}", value) for name, value in content.items()]
        else:
            pairs.append((table, content))
    return pairs


def _key(name: str) -> Key:
    for key in KEYS:
        if key.name == name:
            return key
    raise _unknown(name, [key.name for key in KEYS])


def _unknown(name: str, known: list[str]) -> SettingsError:
    close = nearest(name, known)
    return SettingsError(
        f"{SETTINGS_NAME}: unknown key {name}",
        why=f"Did you mean {close}?" if close else f"Known keys: {', '.join(known)}",
        hint="af config list",
    )


def _runtimes(tables: object) -> dict[str, RuntimeSettings]:
    if not isinstance(tables, Mapping):
        raise SettingsError(f"{SETTINGS_NAME}: runtimes must be tables", why="Write [runtimes.NAME].")
    known = {key.name: key for key in RUNTIME_KEYS}
    result = {}
    for runtime, table in tables.items():
        if not isinstance(table, Mapping):
            raise SettingsError(f"{SETTINGS_NAME}: runtimes.{runtime} must be a table")
        fields = {}
        for name, value in table.items():
            if name not in known:
                raise _unknown(f"runtimes.{runtime}.{name}", [f"runtimes.{runtime}.{key}" for key in known])
            fields[name] = _checked(known[name], value, f"runtimes.{runtime}.{name}")
        result[runtime] = RuntimeSettings(**fields)
    return result


def _checked(key: Key, value: Any, name: str | None = None) -> Any:
    label = f"{SETTINGS_NAME}: {name or key.name}"
    if key.kind is list:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise SettingsError(f"{label} must be a list of strings", why=f"It is {value!r}.")
        if key.name == "env.pass":
            _require_names(label, value)
        if strange := [item for item in value if key.choices and item not in key.choices]:
            raise SettingsError(f"{label} holds {strange[0]!r}", why=f"It may hold {', '.join(key.choices)}.")
        return tuple(value)
    if not isinstance(value, key.kind) or (key.kind is int and isinstance(value, bool)):
        kinds = {str: "a string", int: "a whole number", bool: "true or false"}
        raise SettingsError(f"{label} must be {kinds[key.kind]}", why=f"It is {value!r}.")
    if key.choices and value not in key.choices:
        raise SettingsError(f"{label} must be one of {', '.join(key.choices)}", why=f"It is {value!r}.")
    if isinstance(value, int) and value < key.minimum:
        raise SettingsError(f"{label} must be at least {key.minimum}", why=f"It is {value}.")
    if key.kind is str and not value:
        raise SettingsError(f"{label} is empty", why="Leave the key out to use its default.")
    return value


def _require_names(label: str, names: list[str]) -> None:
    for name in names:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise SettingsError(f"{label}: {name!r} is not the name of an environment variable")
