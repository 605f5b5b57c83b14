"""What a model wrote, as text that every store and every reader can take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def readable(value: Any) -> Any:
    """The same value; half of a surrogate pair, in whatever string of it, becomes a question mark."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {readable(key): readable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [readable(inner) for inner in value]
    return value
