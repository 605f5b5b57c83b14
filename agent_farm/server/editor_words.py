"""What editors are told, in their protocol's terms, and the stdio stream it goes over."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any

import acp
from acp import schema

from agent_farm.errors import AgentFarmError
from agent_farm.operations.look import Logged
from agent_farm.operations.send import Delivered
from agent_farm.operations.status import Colleague
from agent_farm.server.log_lines import OneLine

_LONGEST_LINE = 1 << 26  # contains the files that the user refers to

# what a builder may do without asking, in the protocol's terms
MODES = {
    "ask": ("Ask", "It asks before each change and each command"),
    "edit": ("Edit", "It changes files in its worktree, and asks before each command"),
    "all": ("All", "It asks nothing"),
}


def modes_of(current: str) -> schema.SessionModeState:
    modes = [schema.SessionMode(id=id, name=name, description=told) for id, (name, told) in MODES.items()]
    return schema.SessionModeState(current_mode_id=current, available_modes=modes)


def asks_and_has_ended(now: Colleague, logged: Logged) -> bool:
    """Whether it asked its architect, and waits for a message as the answer."""
    newest = next((event for event in reversed(logged.events) if event.state), None)
    return now.state == "waiting" and newest is not None and newest.state == "idle"


def waits(now: Colleague) -> str:
    """What it waits for; "" if it needs nobody."""
    if now.state not in ("waiting", "limited", "queued", "interrupted"):
        return ""
    if now.state == "queued":
        return "It is queued: it starts when another builder ends.\n"
    reason = f": {now.reason}" if now.reason else ""
    return f"It is {now.state}{reason}. Its terminal: `af attach {now.id}`\n"


def not_delivered(delivered: Delivered) -> AgentFarmError:
    hint = next(iter(delivered.hints), None)
    what = f"The message was not delivered ({delivered.outcome})"
    return AgentFarmError(what, why=delivered.reason, hint=hint)


def text_of(blocks: Sequence[Any]) -> str:
    """Text as it is; for a file the user refers to, its name, and its text if that is included."""
    parts = []
    for block in blocks:
        told = block.model_dump(mode="json", by_alias=True, exclude_none=True)
        resource = told.get("resource") or {}
        if told["type"] == "text":
            parts.append(told["text"])
        elif told["type"] == "resource_link":
            parts.append(told["uri"].removeprefix("file://"))
        elif "text" in resource:
            parts.append(f"{resource['uri'].removeprefix('file://')}:\n{resource['text']}")
    return "\n".join(parts)


def as_acp_error(error: AgentFarmError) -> acp.RequestError:
    """The message contains everything a user can act on, because editors show nothing else."""
    lines = [error.sentence, *error.evidence, *([f"hint: {error.hint}"] if error.hint else [])]
    return acp.RequestError(-32603, "\n".join(lines), {"code": error.code})


class Briefly(OneLine):
    """One line for a message that the library does not know, or that is not JSON."""

    def formatException(self, ei: Any) -> str:
        return f"    {ei[1]}"


class Lines:
    """One message per line. The library's own reader would end the program on JSON that is no object."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, message: dict[str, Any]) -> None:
        self._writer.write(json.dumps(message).encode() + b"\n")
        await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        while True:
            try:
                line = await self._reader.readline()
                message = json.loads(line) if line.strip() else None
            except (ValueError, RecursionError):  # a line without end is one
                line, message = b"?", None
            if isinstance(message, dict):
                return message
            if not line:
                return None
            if line.strip():
                logging.warning("Error parsing JSON-RPC message: it is no JSON object")

    async def close(self) -> None:
        """Standard output is not ours to close."""


async def serve_editor(agent: Any) -> None:
    """Runs until the editor closes its end."""
    told = logging.StreamHandler()
    told.setFormatter(Briefly("af acp: %(message)s"))
    logging.getLogger().addHandler(told)
    await acp.run_agent(agent, Lines(*await acp.stdio_streams(limit=_LONGEST_LINE)))
