"""One table of a butler.toml, read value by value; a mistake is named with its file and key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_farm.errors import AgentFarmError, nearest

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ButlerError(AgentFarmError):
    code = "butler"


@dataclass(frozen=True, slots=True)
class Table:
    """`name` is the table's own, empty for the whole file."""

    file: Path
    name: str
    values: Mapping[str, Any]

    def require_known(self, names: tuple[str, ...]) -> None:
        for key in self.values:
            if key not in names:
                close = nearest(key, names)
                raise self.error(
                    f"unknown key {self.label(key)}",
                    f"Did you mean {self.label(close)}?" if close else f"Known keys: {', '.join(names)}",
                )

    def table(self, key: str) -> Table:
        return Table(self.file, self.label(key), self._mapping(self.label(key), self.values.get(key, {})))

    def tables(self, key: str) -> list[Table]:
        entries = self.values.get(key, [])
        if not isinstance(entries, list):
            raise self.error(f"{self.label(key)} must be tables", f"Write [[{self.label(key)}]].")
        label = self.label(key)
        return [Table(self.file, label, self._mapping(label, entry)) for entry in entries]

    def text(self, key: str, pattern: re.Pattern[str] | None = None) -> str:
        value = self.values.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self.error(f"{self.label(key)} must be a string", f"It is {value!r}.")
        if pattern and not pattern.fullmatch(value):
            raise self.error(f"{self.label(key)} is {value!r}", "Letters, digits, - and _ are allowed.")
        return value

    def text_or_none(self, key: str) -> str | None:
        return self.text(key) if key in self.values else None

    def number(self, key: str, default: int, *, least: int) -> int:
        value = self.values.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            what = f"{self.label(key)} must be a whole number, at least {least}"
            raise self.error(what, f"It is {value!r}.")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise self.error(f"{self.label(key)} must be true or false", f"It is {value!r}.")
        return value

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        value = self.values.get(key, choices[0])
        if value not in choices:
            raise self.error(f"{self.label(key)} must be {' or '.join(choices)}", f"It is {value!r}.")
        return str(value)

    def variables(self, key: str) -> tuple[str, ...]:
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(
            isinstance(item, str) and VARIABLE.fullmatch(item) for item in value
        ):
            raise self.error(
                f"{self.label(key)} must list names of environment variables", f"It is {value!r}."
            )
        return tuple(value)

    def label(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def error(self, what: str, why: str | None, hint: str | None = None) -> ButlerError:
        return ButlerError(f"{self.file}: {what}", why=why, hint=hint)

    def _mapping(self, label: str, value: Any) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise self.error(f"{label} must be a table", f"It is {value!r}.")
        return value
