"""Values as inline TOML, for settings that travel as one argument."""

from __future__ import annotations

import json
from collections.abc import Mapping


def inline_toml(value: object) -> str:
    """A str, bool, number, list or mapping on one line; tomli-w writes documents only."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Mapping):
        pairs = (f"{inline_toml(str(key))}={inline_toml(inner)}" for key, inner in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(inline_toml(inner) for inner in value) + "]"
    raise TypeError(f"no TOML for {type(value).__name__}")
