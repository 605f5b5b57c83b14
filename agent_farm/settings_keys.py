"""What may stand in a settings file: every key, and a document checked key by key."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_farm.errors import AgentFarmError, nearest
from agent_farm.inside import NotReadable, read_plain
from agent_farm.launch import as_command
from agent_farm.paths import SETTINGS_NAME

PERMISSIONS = ("ask", "edit", "all")
STRATEGIES = ("merge", "squash", "rebase", "ff")
AUTO = ("idle", "never")


class SettingsError(AgentFarmError):
    code = "settings"


@dataclass(frozen=True, slots=True)
class Key:
    """One setting: its TOML name, what it takes, and one line for `docs/settings.md`.

    With `asks`, a repository's value runs, copies, passes or widens something: it holds once its user agreed.
    """

    name: str
    kind: type
    default: Any
    text: str
    choices: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int = 1_000_000
    env: str | None = None
    asks: bool = False


NOTIFIED = ("waiting", "exited", "failed")
KEYS = (
    Key("spawn.runtime", str, None, "Runtime of a builder; without it the first usable one"),
    Key("spawn.model", str, None, "Model for the default runtime; without it that runtime's own default"),
    Key("spawn.base", str, None, "Revision builders start from; without it HEAD of the current checkout"),
    Key("spawn.fetch", bool, False, "Fetch the base's remote first, as --fetch does"),
    Key(
        "spawn.names",
        str,
        "hash",
        "What the id of a task is made of: its hash, or its first words",
        choices=("hash", "words"),
    ),
    Key(
        "spawn.permissions",
        str,
        "edit",
        "What a builder may do without asking",
        choices=PERMISSIONS,
        asks=True,
    ),
    Key("worktree.copy", list, (), "Ignored files to copy into a new worktree, as in .gitignore", asks=True),
    Key(
        "worktree.setup",
        str,
        None,
        "Command run by sh in a new worktree before the runtime starts",
        asks=True,
    ),
    Key("worktree.carry", bool, False, "Give uncommitted changes of the current checkout to a new builder"),
    Key("ports.per_builder", int, 10, "Ports reserved for each builder; AF_PORT is the first", maximum=1000),
    Key("env.pass", list, (), "Names of further environment variables that builders may see", asks=True),
    Key(
        "tmux.socket",
        str,
        None,
        "tmux server: a name, or a path with a slash",
        env="AF_TMUX_SOCKET",
        asks=True,
    ),
    Key("merge.strategy", str, "merge", "How `af merge` lands a branch", choices=STRATEGIES),
    Key(
        "merge.check",
        str,
        None,
        "Command run by sh on the result of `af merge` before it lands; without it the checks of [check]",
        asks=True,
    ),
    Key(
        "check.command",
        str,
        None,
        "Command run by sh on work merged into its target, in a clean worktree: green is proof",
        asks=True,
    ),
    Key("check.seconds", int, 1800, "Time limit of each check", minimum=1, maximum=86_400),
    Key("check.auto", str, "never", "When checks run by themselves: once a turn ends, or never", AUTO),
    Key(
        "landing.checks_at_once",
        int,
        0,
        "Checks that `af land` runs side by side; 0: two with four processors or more, else one",
        maximum=8,
    ),
    Key("limits.max_builders", int, 0, "Maximum number of running builders; 0 for no limit"),
    Key(
        "limits.stop_idle", bool, False, "Stop a builder whose turn has ended when another one waits for room"
    ),
    Key(
        "notify.command", str, None, "Command run by sh when a builder enters a state of notify.on", asks=True
    ),
    Key(
        "notify.on",
        list,
        NOTIFIED,
        "States that trigger notify.command",
        choices=(*NOTIFIED, "limited", "idle"),
    ),
    Key("pool.size", int, 0, "Worktrees kept ready for the next spawns", maximum=100),
    Key(
        "forge.command",
        str,
        None,
        "What issues are read with; without it the one that fits the remote, or is installed",
        choices=("gh", "glab"),
    ),
    Key("sessions.keep_days", int, 90, "Days that the record of an ended session is kept; 0 sets no limit"),
    Key("sessions.keep_number", int, 5000, "Records of sessions kept of each butler; 0 sets no limit"),
    Key("server.enabled", bool, True, "Builders get the farm's MCP server", env="AF_SERVER"),
    Key(
        "server.idle_seconds",
        int,
        900,
        "The server ends itself after so long without requests, builders, sessions and schedules; 0: never",
    ),
    Key("server.port", int, 0, "Port of the farm's server; 0 chooses one and keeps it", maximum=65535),
)
RUNTIME_KEYS = (
    Key("command", str, None, "Program to run instead of the runtime's own", asks=True),
    Key("args", list, (), "Further arguments", asks=True),
    Key("model", str, None, "Model for this runtime"),
    Key("permissions", str, None, "Permissions for this runtime", choices=PERMISSIONS, asks=True),
)
CHECK_KEYS = (Key("command", str, None, "Command of a further check, which has this name", asks=True),)
# Tables that hold tables: of each runtime, of each named check.
NAMED_TABLES = {"runtimes": RUNTIME_KEYS, "check": CHECK_KEYS}


@dataclass(frozen=True, slots=True)
class Checked:
    """What a document sets, by the whole name of each key, and what in it is not understood."""

    values: Mapping[str, Any]
    problems: tuple[SettingsError, ...] = ()

    def require_good(self) -> Mapping[str, Any]:
        if self.problems:
            raise self.problems[0]
        return self.values


def check_document(document: Mapping[str, Any], label: str = SETTINGS_NAME) -> Checked:
    """Each key by itself: one that is wrong takes no other along."""
    values: dict[str, Any] = {}
    problems: list[SettingsError] = []
    for name, value in _flatten(document):
        try:
            values[name] = _checked(label, name, value)
        except SettingsError as error:
            own = () if label == SETTINGS_NAME else ("--user",)
            error.hint = error.hint or as_command("af", "config", "unset", *own, name)
            problems.append(error)
    return Checked(values, tuple(problems))


def load_checked(file: Path, label: str) -> Checked:
    try:
        document = load_document(file)
    except SettingsError as error:
        return Checked({}, (error,))
    return check_document(document, label)


def load_document(file: Path) -> dict[str, Any]:
    try:
        text = read_plain(file).decode()
    except FileNotFoundError:
        return {}
    except NotReadable as error:
        raise SettingsError(error.what, why=error.why) from error
    except UnicodeDecodeError as error:
        raise _not_toml(file, error) from error
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _not_toml(file, error) from error


def _not_toml(file: Path, error: Exception) -> SettingsError:
    hint = f"${{EDITOR:-vi}} {shlex.quote(str(file))}"
    return SettingsError(f"{file} is not valid TOML", why=str(error), hint=hint)


def known_key(name: str) -> Key | None:
    """The key of that name; `runtimes.NAME.KEY` and `check.NAME.KEY` exist for every name."""
    table, _, last = name.rpartition(".")
    first, _, own = table.partition(".")
    keys = NAMED_TABLES[first] if own and first in NAMED_TABLES else KEYS
    wanted = last if keys is not KEYS else name
    return next((key for key in keys if key.name == wanted), None)


def known_names() -> list[str]:
    """Of all keys, as documents show them."""
    named = (f"{table}.NAME.{key.name}" for table, keys in NAMED_TABLES.items() for key in keys)
    return [*(key.name for key in KEYS), *named]


def _flatten(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    tables = {key.name.partition(".")[0] for key in KEYS}
    for table, content in document.items():
        if not isinstance(content, Mapping) or (not content and table not in {*tables, *NAMED_TABLES}):
            yield table, content
        else:
            for name, value in content.items():
                if table in NAMED_TABLES and isinstance(value, Mapping):
                    yield from ((f"{table}.{name}.{key}", one) for key, one in value.items())
                else:
                    yield f"{table}.{name}", value


def _checked(label: str, name: str, value: Any) -> Any:
    key = known_key(name)
    if key is None:
        raise _unknown(label, name, value)
    return _value(f"{label}: {name}", key, value)


def _unknown(label: str, name: str, value: Any) -> SettingsError:
    first, *inner = name.split(".")
    known = known_names()
    if first in NAMED_TABLES and len(inner) < 2:
        beside = [key.name.partition(".")[2] for key in KEYS if key.name.startswith(f"{first}.")]
        close = nearest(inner[0], beside) if inner else None
        if close is None:
            what = f"{name} must be a table" if inner else f"{name} must be tables"
            return SettingsError(
                f"{label}: {what}", why=f"Write [{'.'.join([first, *(inner or ['NAME'])])}]."
            )
    elif first in NAMED_TABLES:
        table = name.rpartition(".")[0]
        known = [f"{table}.{key.name}" for key in NAMED_TABLES[first]]
    elif isinstance(value, Mapping) and not value and not inner:
        known = sorted({*(key.name.partition(".")[0] for key in KEYS), *NAMED_TABLES})
    close = nearest(name, known)
    return SettingsError(
        f"{label}: unknown key {name}",
        why=f"Did you mean {close}?" if close else f"Known keys: {', '.join(known)}",
        hint=as_command("af", "config", "unset", *(["--user"] if label != SETTINGS_NAME else []), name),
    )


def _value(label: str, key: Key, value: Any) -> Any:
    if key.kind is list:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise SettingsError(f"{label} must be a list of strings", why=f"It is {value!r}.")
        if key.name == "env.pass":
            _require_names(label, value)
        if strange := [item for item in value if key.choices and item not in key.choices]:
            raise SettingsError(f"{label} contains {strange[0]!r}", why=f"Allowed: {', '.join(key.choices)}.")
        return tuple(value)
    if not isinstance(value, key.kind) or (key.kind is int and isinstance(value, bool)):
        kinds = {str: "a string", int: "a whole number", bool: "true or false"}
        raise SettingsError(f"{label} must be {kinds[key.kind]}", why=f"It is {value!r}.")
    if key.choices and value not in key.choices:
        raise SettingsError(f"{label} must be one of {', '.join(key.choices)}", why=f"It is {value!r}.")
    if isinstance(value, int) and value < key.minimum:
        raise SettingsError(f"{label} must be at least {key.minimum}", why=f"It is {value}.")
    if isinstance(value, int) and value > key.maximum:
        raise SettingsError(f"{label} must be at most {key.maximum}", why=f"It is {value}.")
    if key.kind is str and not value:
        raise SettingsError(f"{label} is empty", why="Leave the key out to use its default.")
    return value


def _require_names(label: str, names: list[str]) -> None:
    for name in names:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise SettingsError(f"{label}: {name!r} is not the name of an environment variable")
