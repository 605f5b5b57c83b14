"""Changing a settings file one key at a time: by changing one line of its text, wherever that is possible."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomli_w

from agent_farm.consent import remember
from agent_farm.disk import file_lock, make_directory, replace_file
from agent_farm.errors import UsageError, meant
from agent_farm.paths import SETTINGS_NAME, user_settings_file, user_state_directory
from agent_farm.settings import open_settings
from agent_farm.settings_document import check_document, load_checked, load_document
from agent_farm.settings_keys import Key, known_key, known_names
from agent_farm.settings_text import with_value, without_value


def set_value(root: Path | None, name: str, text: str, *, agrees: bool = True) -> Any:
    """Store one value, given as text, and return the value it was parsed to.

    In the file of the repository at `root`, or, without `root`, in the user's own. A person who types a
    repository's value `agrees` to exactly that; a program does not.
    """
    key = find_key(name)
    value = _parsed(key, text)
    with _changing(root) as file:
        _set(file, name, value)
    if root and agrees:
        remember(root, open_settings(root).requests([name]))
    return value


def add_values(root: Path, values: Mapping[str, Any]) -> set[str]:
    """Store the values that the repository's file does not set yet, without consent; returns their names."""
    with _changing(root) as file:
        present = load_checked(file, SETTINGS_NAME).values
        missing = {name: value for name, value in values.items() if name not in present}
        for name, value in missing.items():
            _set(file, name, value)
    return set(missing)


def unset_value(root: Path | None, name: str) -> bool:
    """Remove one key, even a misspelt one; False when it was not set."""
    with _changing(root) as file:
        return _unset(file, name)


@contextmanager
def _changing(root: Path | None) -> Iterator[Path]:
    """The file, locked against other changes; if its user made it a link, it stays one."""
    file = root / SETTINGS_NAME if root else user_settings_file().resolve()
    make_directory(file.parent)
    with file_lock(user_state_directory() / "settings.lock"):
        yield file


def _set(file: Path, name: str, value: Any) -> None:
    document = load_document(file)
    *tables, last = name.split(".")
    alone: dict[str, Any] = {last: value}
    for table in reversed(tables):
        alone = {table: alone}
    for problem in check_document(alone, _label(file)).problems:
        problem.hint = None  # nothing was stored that could be removed
        raise problem
    place = document
    for table in tables:
        place = place.setdefault(table, {})
        if not isinstance(place, dict):  # not a table; reported by name
            check_document(document, _label(file)).require_good()
    place[last] = value
    _store(file, document, with_value(_text(file), name.split("."), value))


def _label(file: Path) -> str:
    return SETTINGS_NAME if file.name == SETTINGS_NAME else str(file)


def _unset(file: Path, name: str) -> bool:
    document = load_document(file)
    *tables, last = name.split(".")
    place: Any = document
    for table in tables:
        place = place.get(table, {}) if isinstance(place, dict) else {}
    if not isinstance(place, dict) or last not in place:
        find_key(name)
        return False
    key = known_key(name) or Key(name, str, None, "not a key of af")  # can be removed as well
    del place[last]
    after = without_value(_text(file), name.split("."), explanation=key.text, commented=commented_line(key))
    _store(file, document, after)
    return True


def commented_line(key: Key) -> str:
    """How a starter file shows a key that it does not set."""
    value = list(key.default) if key.kind is list else key.default
    shown = '"…"  # not set' if value is None else json.dumps(value)
    return f"# {key.name.rpartition('.')[2]} = {shown}"


def find_key(name: str) -> Key:
    """The key of that name; `runtimes.NAME.KEY` exists for every runtime."""
    if key := known_key(name):
        return key
    raise UsageError(f"No setting {name}", why=meant(name, known_names()), hint="af config list")


def _parsed(key: Key, text: str) -> Any:
    if key.kind is bool:
        if text not in ("true", "false"):
            raise UsageError(f"{key.name} must be true or false", why=f"It is {text!r}.")
        return text == "true"
    if key.kind is int:
        try:
            return int(text)
        except ValueError:
            raise UsageError(f"{key.name} must be a whole number", why=f"It is {text!r}.") from None
    if key.kind is list:
        return _items(key, text)
    return text


def _items(key: Key, text: str) -> list[str]:
    """The items of `a,b`, or of a list in TOML: `["a", "b"]`."""
    if not text.lstrip().startswith("["):
        return [item.strip() for item in text.split(",") if item.strip()]
    try:
        match tomllib.loads(f"items = {text}"):
            case {"items": list(items), **more} if not more and all(isinstance(item, str) for item in items):
                return items
    except tomllib.TOMLDecodeError:
        pass
    raise UsageError(f"{key.name} must be a list of texts", why=f'It is {text!r}; write a,b or ["a", "b"].')


def _store(file: Path, document: dict[str, Any], text: str) -> None:
    """Store `text` if it parses to `document`; otherwise the document itself, below the old comments."""
    if not _means(text, document):
        text = _written(document, _text(file))
    replace_file(file, text.encode(), mode=file.stat().st_mode & 0o777 if file.exists() else 0o644)


def _means(text: str, document: dict[str, Any]) -> bool:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return _without_empty_tables(found) == _without_empty_tables(document)


def _written(document: dict[str, Any], before: str) -> str:
    used = _without_empty_tables(document)
    head = "".join(f"{line}\n" for line in before.splitlines() if line.startswith("#"))
    return head + ("\n" if head and used else "") + tomli_w.dumps(used)


def _without_empty_tables(document: dict[str, Any]) -> dict[str, Any]:
    kept = {
        name: _without_empty_tables(value) if isinstance(value, dict) else value
        for name, value in document.items()
    }
    return {name: value for name, value in kept.items() if value != {}}


def _text(file: Path) -> str:
    """The file's text, with its line ends unchanged."""
    return file.read_bytes().decode() if file.exists() else ""
