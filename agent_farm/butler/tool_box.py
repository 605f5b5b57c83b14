"""Adding a tool: what a user can cause becomes the tool's error text, not a traceback in the log."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, ParamSpec, TypeVar, get_args

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from agent_farm.butler.tool_words import DESTROYS, OUTSIDE, READS, REPEATS, describe
from agent_farm.errors import AgentFarmError

P = ParamSpec("P")
R = TypeVar("R")


def tool(server: MCPServer[Any]) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
    def add(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        @functools.wraps(function)
        async def answer(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return await function(*args, **kwargs)
            except AgentFarmError as error:
                raise ToolError(text_of(error)) from error

        name = function.__name__
        _put_words(answer, inspect.signature(function, eval_str=True))
        annotations = ToolAnnotations(
            read_only_hint=name in READS,
            destructive_hint=name in DESTROYS,
            idempotent_hint=name in READS | REPEATS,
            open_world_hint=name in OUTSIDE,
        )
        server.add_tool(answer, annotations=annotations)
        return answer

    return add


def _put_words(answer: Any, signature: inspect.Signature) -> None:
    """Each parameter gets its description, where the schema is made from."""
    parameters = [
        parameter
        if _is_context(parameter.annotation)
        else parameter.replace(
            annotation=Annotated[parameter.annotation, Field(description=describe(parameter.name))]
        )
        for parameter in signature.parameters.values()
    ]
    answer.__signature__ = signature.replace(parameters=parameters)
    answer.__annotations__ = {
        **{parameter.name: parameter.annotation for parameter in parameters},
        "return": signature.return_annotation,
    }


def _is_context(annotation: Any) -> bool:
    """The request's context, which is no parameter of a caller's."""
    return any(
        isinstance(part, type) and issubclass(part, Context) for part in (annotation, *get_args(annotation))
    )


_AT_ONCE = 8


@functools.cache
def _threads(kind: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix=f"tool {kind}")


async def in_thread(kind: str, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """On a thread for calls of this kind: those that take long hold up their own kind and no other."""
    work = functools.partial(function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_threads(kind), work)


def text_of(error: AgentFarmError) -> str:
    """What, why, evidence and the next command, as `af` prints them."""
    lines = [error.what, *([error.why] if error.why else []), *error.evidence]
    return "\n".join([*lines, *([f"hint: {error.hint}"] if error.hint else [])])
