"""Who is calling, seen from inside a tool: what the guard found out travels in the request's scope."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from agent_farm.butler.tokens import Caller

_KEY = "agent_farm.caller"
STDIO_CALLER = Caller("architect", "stdio")


def set_caller(scope: MutableMapping[str, Any], caller: Caller) -> None:
    scope[_KEY] = caller


def caller_of(scope: Mapping[str, Any]) -> Caller | None:
    caller = scope.get(_KEY)
    return caller if isinstance(caller, Caller) else None


def caller_in(context: Any) -> Caller:
    """The caller of an MCP request; over stdio there is no HTTP request, and the caller owns the process."""
    request = getattr(context, "request", None)
    if request is None:
        return STDIO_CALLER
    caller = caller_of(request.scope)
    if caller is None:
        raise PermissionError("a request reached a tool without passing the guard")
    return caller
