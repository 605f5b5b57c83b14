"""Verbs as the board asks them: the operations of every door, on a thread, so that no key waits."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.operations.operation import Answer, Context, Operation
from agent_farm.operations.requests import read_request
from agent_farm.operations.table import load


async def ask(root: Path, verb: str, **fields: Any) -> Any:
    """Its answer. AgentFarmError as at every door, also where the system fails."""
    return await asyncio.to_thread(_answered, load(verb), root, fields)


def _answered(operation: Operation[Any, Any], root: Path, fields: dict[str, Any]) -> Answer:
    try:
        farm = _opened(root, tolerant=operation.tolerant)
        context = Context(farm, naming_agrees=True, whole_ids=True, directory=root)
        answer: Answer = operation.answer_to(context, read_request(operation, fields))
        return answer
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        raise AgentFarmError(f"{error.strerror or error}{place}") from error


def _opened(root: Path, *, tolerant: bool) -> Farm:
    farm = open_farm(root)
    if not tolerant:
        farm.settings.require_good()
    return farm
