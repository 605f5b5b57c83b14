"""What was tried on each CLI and cannot be read off its adapter, from facts.toml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
    cannot: str


def load_facts() -> dict[str, Facts]:
    import tomllib

    tables = tomllib.loads(Path(__file__).with_name("facts.toml").read_text(encoding="utf-8"))
    return {name: Facts(**table) for name, table in tables.items()}
