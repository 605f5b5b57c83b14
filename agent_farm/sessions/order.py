"""SessionOrder: one accepted trigger, with everything its run depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_farm.runtimes.base import Permissions, RuntimeAdapter
from agent_farm.runtimes.bounds import Bounds
from agent_farm.runtimes.mcp_config import Transport
from agent_farm.server.tokens import Tokens


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What one trigger may choose for itself; None leaves it to the butler.

    `checkout` is what the session is asked about, `resumed` the record of the session whose conversation
    goes on in this one.
    """

    adapter: RuntimeAdapter | None = None
    model: str | None = None
    cwd: Path | None = None
    timeout: float | None = None
    permissions: Permissions = "edit"
    runtime_args: tuple[str, ...] | None = None
    command: tuple[str, ...] | None = None
    parent: str | None = None
    session_id: str | None = None
    checkout: Path | None = None
    bounds: Bounds | None = None
    resumed: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SessionOrder:
    session_id: str
    prompt: str
    context: str | None
    trigger_source: str
    max_turns: int
    adapter: RuntimeAdapter
    model: str | None
    cwd: Path
    options: RunOptions
    home: str

    @property
    def whole_prompt(self) -> str:
        return f"{self.context}\n\n{self.prompt}" if self.context else self.prompt


@dataclass(frozen=True, slots=True)
class Progress:
    """`event` is queued, running, tool or ended."""

    session_id: str
    event: str
    detail: Mapping[str, Any]


Observer = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The butler's own MCP server, the only one its sessions know."""

    port: int
    transport: Transport = "http"
    tokens: Tokens | None = None

    def servers(self, name: str, session_id: str, token: str | None) -> dict[str, dict[str, object]]:
        path = "sse" if self.transport == "sse" else "mcp"
        server: dict[str, object] = {
            "url": f"http://localhost:{self.port}/{path}?runtime_session_id={session_id}",
            "type": self.transport,
        }
        if token:
            server["token"] = token
        return {name: server}
