"""Changing `agent-farm.toml` one key at a time: one line of the text, wherever that is possible."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent_farm.consent import remember
from agent_farm.disk import replace_file
from agent_farm.errors import UsageError, nearest
from agent_farm.paths import SETTINGS_NAME
from agent_farm.settings import open_settings
from agent_farm.settings_keys import KEYS, RUNTIME_KEYS, Key, check_document, known_key, load_document
from agent_farm.settings_text import with_value, without_value


def set_value(root: Path, name: str, text: str) -> Any:
    """Store one value, given as text, and return it as it was understood."""
    key = find_key(name)
    value = _parsed(key, text)
    document = load_document(root / SETTINGS_NAME)
    *tables, last = name.split(".")
    place = document
    for table in tables:
        place = place.setdefault(table, {})
    place[last] = value
    check_document(document).require_good()
    before = _text(root / SETTINGS_NAME)
    _store(root, document, with_value(before, name.split("."), value))
    remember(root, open_settings(root).requests([name]))  # who types it agrees to it
    return value


def unset_value(root: Path, name: str) -> bool:
    """Back to the default; False when it was not set."""
    document = load_document(root / SETTINGS_NAME)
    *tables, last = name.split(".")
    place: Any = document
    for table in tables:
        place = place.get(table, {}) if isinstance(place, dict) else {}
    if not isinstance(place, dict) or last not in place:
        find_key(name)
        return False
    key = known_key(name) or Key(name, str, None, "not a key of af")  # taken out as well
    del place[last]
    before = _text(root / SETTINGS_NAME)
    after = without_value(before, name.split("."), explanation=key.text, commented=commented_line(key))
    _store(root, document, after)
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
    known = [key.name for key in KEYS] + [f"runtimes.NAME.{key.name}" for key in RUNTIME_KEYS]
    close = nearest(name, known)
    raise UsageError(
        f"No setting {name}", why=f"Did you mean {close}?" if close else None, hint="af config list"
    )


def _parsed(key: Key, text: str) -> Any:
    if key.kind is bool:
        if text not in ("true", "false"):
            raise UsageError(f"{key.name} is true or false", why=f"It is {text!r}.")
        return text == "true"
    if key.kind is int:
        try:
            return int(text)
        except ValueError:
            raise UsageError(f"{key.name} is a whole number", why=f"It is {text!r}.") from None
    if key.kind is list:
        return [item.strip() for item in text.split(",") if item.strip()]
    return text


def _store(root: Path, document: dict[str, Any], text: str) -> None:
    """The text when a parser reads it as the document; else the document, below the comments there were."""
    file = root / SETTINGS_NAME
    if not _means(text, document):
        text = _written(document, _text(file))
    replace_file(file, text.encode(), mode=file.stat().st_mode & 0o777 if file.exists() else 0o644)


def _means(text: str, document: dict[str, Any]) -> bool:
    import tomllib

    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return _without_empty_tables(found) == _without_empty_tables(document)


def _written(document: dict[str, Any], before: str) -> str:
    import tomli_w

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
    """With its line ends as they are."""
    return file.read_bytes().decode() if file.exists() else ""
