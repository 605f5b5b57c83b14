"""Operations as MCP tools: each with its schema, its annotations, and the answer that all doors give."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations

from agent_farm.consent import HINT
from agent_farm.errors import AgentFarmError, ConsentNeeded, UsageError
from agent_farm.launch import as_command
from agent_farm.operations.field_words import in_words
from agent_farm.operations.operation import CallerKind, Failure, Operation, document, with_parts
from agent_farm.operations.requests import answer_schema, read_request, request_schema
from agent_farm.operations.table import offered
from agent_farm.server.answering import OpenContext, answer_to
from agent_farm.server.answers import expected
from agent_farm.server.callers import Caller
from agent_farm.sessions.failures import MOST_LEVELS, is_deeper

# Only the user may approve what a repository wants, or write settings that need no approval: no program may.
# The other fields are for a command that may be interrupted, and for another machine.
NOT_FOR_PROGRAMS = ("yes", "user", "attached", "new_id", "for_home")

_log = logging.getLogger(__name__)


def tools_for(caller: CallerKind) -> list[Tool]:
    return [_tool(operation) for operation in offered("mcp", caller)]


def _tool(operation: Operation[Any, Any]) -> Tool:
    return Tool(
        name=operation.name,
        description=operation.text,
        input_schema=request_schema(operation.request, without=NOT_FOR_PROGRAMS),
        output_schema=answer_schema(operation.answer),
        annotations=ToolAnnotations(
            read_only_hint=operation.effect == "reads",
            destructive_hint=operation.effect == "destroys",
            idempotent_hint=operation.effect == "reads" or operation.repeats,
            open_world_hint=operation.outside,
        ),
    )


async def call_tool(
    name: str, arguments: Mapping[str, Any], caller: Caller, open_context: OpenContext
) -> CallToolResult:
    operation = next((one for one in offered("mcp", caller.kind) if one.name == name), None)
    if operation is None:
        name = name[:80]
        _log.warning("Refused %s %s the tool %r", caller.kind, caller.id, name)
        article = "an" if caller.kind == "architect" else "a"
        return _failed(AgentFarmError(f"{name!r} is not a tool for {article} {caller.kind}"))
    try:
        _require_allowed(operation, arguments)
        request = read_request(operation, arguments, lax=True)
        answer = await answer_to(operation, open_context(operation), request)
        found = document(with_parts(answer, partial(_part_for_programs, operation)))
    except Exception as error:
        return _failed(_for_programs(expected(error, name), operation, _named(arguments)))
    text = json.dumps(found, ensure_ascii=False)
    if (plain := as_utf8(text)) != text:
        found = json.loads(plain)
    return CallToolResult(content=[TextContent(type="text", text=plain)], structured_content=found)


def as_utf8(text: str) -> str:
    """With question marks for what is not valid UTF-8: an answer with such characters could not be sent."""
    return text.encode(errors="replace").decode()


def _require_allowed(operation: Operation[Any, Any], arguments: Mapping[str, Any]) -> None:
    """A field that no tool has is unknown here, even if the terminal has it. What is nested deeper than a
    record can hold is refused before anything is done that would then not be on record.
    """
    for name in NOT_FOR_PROGRAMS:
        if name in arguments:
            offered_here = [one for one in operation.request.__struct_fields__ if one not in NOT_FOR_PROGRAMS]
            why = f"{name} is unknown to this tool; it takes {', '.join(offered_here)}"
            raise UsageError(f"Invalid arguments for {operation.name}", why=why)
    if is_deeper(arguments):
        why = f"They contain more than {MOST_LEVELS} lists and objects inside one another"
        raise UsageError(f"Invalid arguments for {operation.name}", why=why)


def _part_for_programs(operation: Operation[Any, Any], part: Any) -> Any:
    """What failed of several is said like what fails alone."""
    if not isinstance(part, Failure):
        return part
    return Failure.of(part.id, _for_programs(part.error, operation, [part.id]))


def _named(arguments: Mapping[str, Any]) -> list[str]:
    ids = arguments.get("ids")
    words = [arguments.get("id"), arguments.get("name"), *(ids if isinstance(ids, list) else ())]
    return [one for one in words if isinstance(one, str)]


def _for_programs(
    error: AgentFarmError, operation: Operation[Any, Any], named: Sequence[str]
) -> AgentFarmError:
    """Names fields as arguments of the tool, and says who can approve, and by which command."""
    if error.hint and error.hint.endswith(" --help"):
        error.hint = None
    if not isinstance(error, ConsentNeeded):
        return in_words(error, operation.request.__struct_fields__, str)
    return ConsentNeeded(
        error.what,
        why="No tool can approve that: ask the repository's user to read it and approve it once.",
        hint=as_command("af", *operation.name.split("_"), "--yes", *named) if named else HINT,
        evidence=error.evidence,
    )


def _failed(error: AgentFarmError) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=as_utf8(text_of(error)))], is_error=True)


def text_of(error: AgentFarmError) -> str:
    """What, why, evidence and the next command, as `af` prints them."""
    lines = [error.what, *([error.why] if error.why else []), *error.evidence]
    return "\n".join([*lines, *([f"hint: {error.hint}"] if error.hint else [])])
