"""What an editor and `af acp` say to each other over stdio: a message a line."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import acp

from agent_farm.server.editor_words import Briefly

_LONGEST_LINE = 1 << 26  # files that the person points to are in it


class Lines:
    """A message a line. The library's own reader ends the program at JSON that is no object."""

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
    """Until the editor closes its end."""
    told = logging.StreamHandler()
    told.setFormatter(Briefly("af acp: %(message)s"))
    logging.getLogger().addHandler(told)
    await acp.run_agent(agent, Lines(*await acp.stdio_streams(limit=_LONGEST_LINE)))
