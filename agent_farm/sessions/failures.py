"""What went wrong, as one line of a record or of the log."""

from __future__ import annotations

from typing import Any

from agent_farm.errors import AgentFarmError
from agent_farm.sessions.readable import readable


def reason_of(error: Exception) -> str:
    if not isinstance(error, AgentFarmError):
        return str(readable(str(error) or type(error).__name__))
    details = "; ".join([*([error.why] if error.why else []), *error.evidence])
    return str(readable(f"{error.what} ({details})" if details else error.what))


def log_failure(logger: Any, what: str, error: Exception) -> None:
    """With a traceback only where it is nobody's doing but ours."""
    if isinstance(error, AgentFarmError):
        logger.warning("%s: %s", what, reason_of(error))
    else:
        logger.warning("%s failed", what, exc_info=error)
