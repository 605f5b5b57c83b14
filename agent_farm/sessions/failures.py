"""Describes failures in one line, and makes text that every store and reader accepts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from agent_farm.errors import AgentFarmError

MOST_LEVELS = 100  # of lists and objects inside one another; Python's own limit is not far above


def reason_of(error: Exception) -> str:
    if not isinstance(error, AgentFarmError):
        return str(readable(str(error) or type(error).__name__))
    details = "; ".join([*([error.why] if error.why else []), *error.evidence])
    return str(readable(f"{error.what} ({details})" if details else error.what))


def log_failure(logger: Any, what: str, error: Exception) -> None:
    """Logs a traceback only for a bug of ours."""
    if isinstance(error, AgentFarmError):
        logger.warning("%s: %s", what, reason_of(error))
    else:
        logger.warning("%s failed", what, exc_info=error)


def readable(value: Any, levels: int = MOST_LEVELS) -> Any:
    """The same value with a question mark for every lone surrogate in its strings, numbers that are not
    finite as text, and "…" for what is below `levels`.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if not isinstance(value, Mapping | list | tuple):
        return value
    if levels == 0:
        return "…"
    if isinstance(value, Mapping):
        return {readable(key): readable(inner, levels - 1) for key, inner in value.items()}
    return [readable(inner, levels - 1) for inner in value]


def is_deeper(value: Any, levels: int = MOST_LEVELS) -> bool:
    """Whether `readable` would leave something out."""
    if not isinstance(value, Mapping | list | tuple):
        return False
    inside = value.values() if isinstance(value, Mapping) else value
    return levels == 0 or any(is_deeper(one, levels - 1) for one in inside)
