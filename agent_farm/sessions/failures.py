"""Describes failures in one line, and makes text that every store and reader accepts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_farm.errors import AgentFarmError


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


def readable(value: Any) -> Any:
    """The same value with a question mark for every lone surrogate in its strings."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {readable(key): readable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [readable(inner) for inner in value]
    return value
