"""The API's answers: versioned JSON, and every expected failure in one form with its status."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from agent_farm.errors import AgentFarmError, UsageError, as_farm_error, error_of

_log = logging.getLogger(__name__)

# The HTTP status of an expected failure; any other is a conflict with the present state.
_STATUS = {"usage": 400, "not-found": 404, "bug": 500}
_OTHER = 409


async def body_of(request: Request, most: int) -> bytes | None:
    """The body; None if it is longer than `most` bytes, whose rest is not read."""
    data = bytearray()
    try:
        async for piece in request.stream():
            data += piece
            if len(data) > most:
                return None
    except ClientDisconnect:
        raise UsageError("The body broke off") from None
    return bytes(data)


def answer(document: Mapping[str, Any], status: int = 200) -> Response:
    return Response(encode({"version": 1, **document}), status, media_type="application/json")


def encode(document: object) -> bytes:
    """ASCII, so that no byte of a name or message can be anything but text to the reader."""
    return json.dumps(document, default=_listed).encode()


def refuse(status: int, code: str, what: str, why: str | None = None, hint: str | None = None) -> Response:
    error = error_of(code, what, why=why, hint=hint, evidence=())
    return answer({"error": error.document}, status)


def answer_error(error: AgentFarmError) -> Response:
    """The error in the same words as on the command line."""
    return answer({"error": error.document}, _STATUS.get(error.code, _OTHER))


def expected(error: Exception, where: str) -> AgentFarmError:
    """The part of an error that the caller gets; a bug is logged in full."""
    if isinstance(error, (AgentFarmError, OSError)):
        return as_farm_error(error)
    _log.error("A bug while answering %s", where, exc_info=error)
    bug = AgentFarmError(
        f"This is a bug in af: {type(error).__name__}",
        why="The details are in the server's log.",
        hint="af butler logs",
    )
    bug.code = "bug"
    return bug


def _listed(value: object) -> Any:
    return list(value) if isinstance(value, (tuple, set, frozenset)) else str(value)
