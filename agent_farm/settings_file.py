"""Changing `agent-farm.toml` one key at a time. Lines that are comments stay, at the top."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent_farm.disk import replace_file
from agent_farm.errors import UsageError, nearest
from agent_farm.paths import SETTINGS_NAME
from agent_farm.settings import KEYS, RUNTIME_KEYS, Key, check_document, load_document


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
    _store(root, document)
    return value


def unset_value(root: Path, name: str) -> bool:
    """Back to the default; False when it was not set."""
    find_key(name)
    document = load_document(root / SETTINGS_NAME)
    *tables, last = name.split(".")
    place: Any = document
    for table in tables:
        place = place.get(table, {})
    if last not in place:
        return False
    del place[last]
    _store(root, document)
    return True


def find_key(name: str) -> Key:
    """The key of that name; `runtimes.NAME.KEY` exists for every runtime."""
    parts = name.split(".")
    if len(parts) == 3 and parts[0] == "runtimes":
        for key in RUNTIME_KEYS:
            if key.name == parts[2]:
                return key
    for key in KEYS:
        if key.name == name:
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


def _store(root: Path, document: dict[str, Any]) -> None:
    import tomli_w

    check_document(document)
    used = _without_empty_tables(document)
    file = root / SETTINGS_NAME
    comments = [line for line in _lines(file) if line.startswith("#")]
    head = "".join(f"{line}\n" for line in comments)
    replace_file(file, head + ("\n" if head and used else "") + tomli_w.dumps(used), mode=0o644)


def _without_empty_tables(document: dict[str, Any]) -> dict[str, Any]:
    kept = {
        name: _without_empty_tables(value) if isinstance(value, dict) else value
        for name, value in document.items()
    }
    return {name: value for name, value in kept.items() if value != {}}


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []
