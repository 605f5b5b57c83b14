"""An AI session as the architect: the real `af mcp`, spoken to over stdio."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import Tool


@dataclass
class Architect:
    session: ClientSession

    async def tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in (await self.session.list_tools()).tools}

    async def call(self, name: str, arguments: dict[str, Any] | None = None) -> tuple[bool, Any]:
        """Whether it failed, and what it answered."""
        result = await self.session.call_tool(name, arguments or {})
        text = result.content[0].text if result.content else ""  # type: ignore[union-attr]
        return bool(result.is_error), result.structured_content or text

    async def done(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        failed, answer = await self.call(name, arguments)
        assert not failed, answer
        return answer

    async def refused(self, name: str, arguments: dict[str, Any] | None = None) -> str:
        failed, answer = await self.call(name, arguments)
        assert failed, answer
        return str(answer)


@asynccontextmanager
async def architect_over_stdio(repo: Path) -> AsyncIterator[Architect]:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "agent_farm", "mcp"], cwd=repo, env=dict(os.environ)
    )
    async with stdio_client(command) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield Architect(session)
