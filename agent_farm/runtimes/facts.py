"""What was tried on each CLI and cannot be read off its adapter, from facts.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from agent_farm.errors import DamagedFile


@dataclass(frozen=True, slots=True)
class Facts:
    """One runtime's column in the table; `tried` is the version that the tests drive."""

    tried: str
    lock: str
    token: str
    refused_token: str
    instructions: str
    role: str
    login: str
    first_run: str
    events: str
    conversation: str
    turn_limit: str
    long_prompt: str
    slow_tool: str
    cannot: str


FILE = Path(__file__).with_name("facts.toml")
_NAMES = tuple(field.name for field in fields(Facts))


def load_facts() -> dict[str, Facts]:
    import tomllib

    tables = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {name: _facts(name, table) for name, table in tables.items()}


def require_facts(name: str) -> Facts:
    found = load_facts().get(name)
    if found is None:
        raise DamagedFile(f"{FILE.name} has no [{name}]", why=f"its keys are {', '.join(_NAMES)}")
    return found


def _facts(name: str, table: Mapping[str, str]) -> Facts:
    lacks, unknown = [key for key in _NAMES if key not in table], sorted(set(table) - set(_NAMES))
    if lacks or unknown:
        told = [f"lacks: {', '.join(lacks)}"] if lacks else []
        told += [f"unknown: {', '.join(unknown)}"] if unknown else []
        raise DamagedFile(f"{FILE.name}: [{name}] is not whole", why="; ".join(told))
    return Facts(**table)
