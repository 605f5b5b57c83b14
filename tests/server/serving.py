"""The real server in the test's own loop: real sockets, real HTTP, the demo runtime."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from agent_farm.loopback import listen
from agent_farm.operations.operation import CallerKind
from agent_farm.operations.table import offered
from agent_farm.paths import FarmPaths
from agent_farm.server.app import build_app
from agent_farm.server.callers import Tokens
from agent_farm.server.serving import make_uvicorn
from agent_farm.server.tokens import hash_token
from agent_farm.sessions.database import Database
from agent_farm.sessions.other_machines import NewElsewhere
from agent_farm.sessions.roster import butler_names
from agent_farm.sessions.running_butler import RunningButler
from agent_farm.sessions.running_butlers import RunningButlers, open_butlers
from tests.consenting import agree_to_all
from tests.gitrepo import write_files
from tests.sessions.records import Records

ARCHITECT = "architect-token"


def tools_of(kind: CallerKind) -> set[str]:
    """What a token of this kind is good for."""
    return {operation.name for operation in offered("mcp", kind)}


@dataclass
class Served:
    butlers: RunningButlers
    port: int
    http: httpx2.AsyncClient

    @property
    def running(self) -> RunningButler:
        return self.butlers.own

    @property
    def tokens(self) -> Tokens:
        return self.butlers.tokens

    @property
    def sessions(self) -> Records:
        return Records(self.butlers.sessions)

    def url(self, path: str = "/mcp", session: str | None = None) -> str:
        query = f"?runtime_session_id={session}" if session else ""
        return f"http://localhost:{self.port}{path}{query}"

    async def rpc(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        token: str | None = ARCHITECT,
        session: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        sent = {"Accept": "application/json, text/event-stream", **(headers or {})}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(params or {})}
        return await self.http.post(self.url(session=session), json=body, headers=sent)

    async def call(
        self, tool: str, arguments: Mapping[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        """The result of one tool call."""
        params = {"name": tool, "arguments": dict(arguments or {})}
        response = await self.rpc("tools/call", params, **more)
        assert response.status_code == 200, response.text
        result: dict[str, Any] = document_of(response)["result"]
        return result


def document_of(response: httpx2.Response) -> dict[str, Any]:
    """The answer to a request: JSON, or the last event of a stream of them."""
    if response.headers["content-type"].startswith("text/event-stream"):
        events = [
            line.removeprefix("data:") for line in response.text.splitlines() if line.startswith("data:")
        ]
        return dict(json.loads(events[-1]))
    return dict(response.json())


@asynccontextmanager
async def serving(
    root: Path,
    butler_toml: str = "",
    name: str = "health",
    wrap: Callable[[RunningButlers], Any] = build_app,
    elsewhere: Callable[[Database], NewElsewhere] | None = None,
) -> AsyncIterator[Served]:
    """A farm at `root` whose one butler is `name`, on the demo runtime unless the file says otherwise."""
    text = butler_toml or '[butler]\nruntime = "demo"\n'
    if name not in butler_names(root):
        write_files(
            root, {f"codev/roster/{name}/butler.toml": text, f"codev/roster/{name}/CLAUDE.md": "Serve."}
        )
        agree_to_all(root)
    sockets = listen(0)
    port = sockets[0].getsockname()[1]
    tokens = Tokens(FarmPaths(root).runs, hash_token(ARCHITECT))
    butlers = open_butlers(root, ports=(port,), tokens=tokens, environ=dict(os.environ), elsewhere=elsewhere)
    server = make_uvicorn(wrap(butlers))
    task = asyncio.create_task(server.serve(sockets=sockets))
    try:
        async with httpx2.AsyncClient(timeout=120) as http:
            yield Served(butlers, port, http)
    finally:
        await butlers.drain(5)
        server.should_exit = True
        with suppress(asyncio.CancelledError):
            await task
        butlers.close()
