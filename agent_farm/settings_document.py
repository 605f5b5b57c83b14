"""A settings file as it was written, checked key by key."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from agent_farm.errors import meant, nearest
from agent_farm.inside import NotReadable, read_plain
from agent_farm.launch import as_command
from agent_farm.paths import SETTINGS_NAME
from agent_farm.settings_keys import (
    KEYS,
    NAMED_TABLES,
    TOLD_HERE,
    Key,
    SettingsError,
    known_key,
    known_names,
)


class CheckedSettings(Struct, frozen=True):
    """What a document sets, by the full name of each key, and what in it was not understood."""

    values: Mapping[str, Any]
    problems: tuple[SettingsError, ...] = ()

    def require_good(self) -> Mapping[str, Any]:
        if self.problems:
            raise self.problems[0]
        return self.values


def check_document(document: Mapping[str, Any], label: str = SETTINGS_NAME) -> CheckedSettings:
    """Each key is checked by itself: one that is wrong does not invalidate the others."""
    values: dict[str, Any] = {}
    problems: list[SettingsError] = []
    for name, value in _flatten(document):
        try:
            values[name] = _checked(label, name, value)
        except SettingsError as error:
            own = () if label == SETTINGS_NAME else ("--user",)
            error.hint = error.hint or as_command("af", "config", "unset", *own, name)
            problems.append(error)
    return CheckedSettings(values, tuple(problems))


def load_checked(file: Path, label: str) -> CheckedSettings:
    try:
        document = load_document(file)
    except SettingsError as error:
        return CheckedSettings({}, (error,))
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
    import tomllib  # its patterns take a millisecond, and many farms have no such file

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _not_toml(file, error) from error


def _not_toml(file: Path, error: Exception) -> SettingsError:
    hint = f"${{EDITOR:-vi}} {shlex.quote(str(file))}"
    return SettingsError(f"{file} is not valid TOML", why=str(error), hint=hint)


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
    return SettingsError(
        f"{label}: unknown key {name}",
        why=meant(name, known, f"Known keys: {', '.join(known)}"),
        hint=as_command("af", "config", "unset", *(["--user"] if label != SETTINGS_NAME else []), name),
    )


def _value(label: str, key: Key, value: Any) -> Any:
    if key.kind is list:
        return _items(label, key, value)
    if not isinstance(value, key.kind) or (key.kind is int and isinstance(value, bool)):
        kinds = {str: "a string", int: "a whole number", bool: "true or false"}
        raise SettingsError(f"{label} must be {kinds[key.kind]}", why=f"It is {value!r}.")
    if key.choices and value not in key.choices:
        raise SettingsError(f"{label} must be one of {', '.join(key.choices)}", why=f"It is {value!r}.")
    if isinstance(value, int):
        _require_within(label, key, value)
    if key.kind is str and not value:
        raise SettingsError(f"{label} is empty", why="Leave the key out to use its default.")
    return value


def _items(label: str, key: Key, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise SettingsError(f"{label} must be a list of strings", why=f"It is {value!r}.")
    if key.name in _ITEM_CHECKS:
        _ITEM_CHECKS[key.name](label, value)
    if strange := [item for item in value if key.choices and item not in key.choices]:
        raise SettingsError(f"{label} contains {strange[0]!r}", why=f"Allowed: {', '.join(key.choices)}.")
    return tuple(value)


def _require_within(label: str, key: Key, number: int) -> None:
    if number < key.minimum:
        raise SettingsError(f"{label} must be at least {key.minimum}", why=f"It is {number}.")
    if number > key.maximum:
        raise SettingsError(f"{label} must be at most {key.maximum}", why=f"It is {number}.")


def _require_targets(label: str, targets: list[str]) -> None:
    for target in targets:
        if target not in TOLD_HERE and not re.fullmatch(r"https?://[!-~]+", target):
            why = f"Allowed: {', '.join(TOLD_HERE)}, and http(s) addresses."
            raise SettingsError(f"{label} contains {target!r}", why=why)


def _require_names(label: str, names: list[str]) -> None:
    for name in names:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise SettingsError(f"{label}: {name!r} is not the name of an environment variable")


_ITEM_CHECKS = {"env.pass": _require_names, "notify.to": _require_targets}
