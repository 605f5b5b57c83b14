"""The `agent-farm.toml` a new farm starts with: every key there is, none of them set."""

from __future__ import annotations

from itertools import groupby

from agent_farm.settings_file import commented_line
from agent_farm.settings_keys import KEYS, NAMED_TABLES, Key

_HEAD = """\
# Settings of this farm. Every key is optional and is shown with its default, if it has one.
# To set one, take away the "#" before its name.
# `af config list` shows what is in force and where it comes from.
"""
_EXAMPLES = {
    "runtimes": ("claude-code", "one runtime, by its"),
    "check": ("lint", "a further check, under its own"),
}


def starter_settings() -> str:
    """TOML that sets nothing, with one line of explanation for each key."""
    tables = groupby(KEYS, key=lambda key: key.name.partition(".")[0])
    blocks = [_HEAD, *(_table(name, list(keys)) for name, keys in tables)]
    for table, keys in NAMED_TABLES.items():
        name, what = _EXAMPLES[table]
        blocks.append(f"# Settings of {what} name.\n# {_table(f'{table}.{name}', list(keys))}")
    return "\n".join(blocks)


def _table(name: str, keys: list[Key]) -> str:
    return "\n".join([f"[{name}]", *(line for key in keys for line in _lines(key))]) + "\n"


def _lines(key: Key) -> list[str]:
    text = f"# {key.text}"
    if key.choices:
        text += f" ({', '.join(key.choices)})"
    return [f"{text}.", commented_line(key)]
