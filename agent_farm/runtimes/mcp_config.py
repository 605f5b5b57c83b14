"""The one MCP server of a run in each runtime's own format, and the directory for its file."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from msgspec import Struct

from agent_farm.digests import sha256
from agent_farm.errors import UsageError
from agent_farm.runtimes.environment import MCP_TOKEN

Transport = Literal["http", "sse"]

# How long a CLI waits for one of its tools: `trigger` only answers when a whole session has ended. By
# default, most CLIs give up after a minute.
TOOL_SECONDS = 3600


class McpServer(Struct, frozen=True):
    """`token` never enters an argv or a file: configurations name the variable AF_MCP_TOKEN instead."""

    name: str
    url: str
    token: str | None = None
    transport: Transport = "http"

    def environment(self) -> dict[str, str]:
        return {MCP_TOKEN: self.token} if self.token else {}


# name -> the server, or {"url": …, "token": …, "type": "http" | "sse"}
GivenServers = Mapping[str, McpServer | Mapping[str, object]]


def as_servers(given: GivenServers) -> tuple[McpServer, ...]:
    return tuple(_as_server(name, server) for name, server in given.items())


def one_server(given: GivenServers) -> McpServer | None:
    """The only server of a locked run, or None; more than one is refused."""
    servers = as_servers(given)
    if len(servers) > 1:
        raise UsageError(
            "A locked runtime gets exactly one MCP server", why=f"given: {', '.join(s.name for s in servers)}"
        )
    return servers[0] if servers else None


def locked_name(server: McpServer, nonce: str) -> str:
    """A name the project cannot have guessed, for CLIs in which a project's server would win."""
    return f"{server.name}-{sha256(nonce.encode()).hexdigest()[:8]}"


def bearer_header(server: McpServer, *, variable: str = f"${{{MCP_TOKEN}}}") -> dict[str, object]:
    """`headers` that name the token's variable, for CLIs that replace it by the value."""
    return {"headers": {"Authorization": f"Bearer {variable}"}} if server.token else {}


def claude_form(servers: Sequence[McpServer], **more: object) -> dict[str, object]:
    """`{"mcpServers": {name: {"type", "url", …}}}`, with further keys for some CLIs.

    Claude itself gets `alwaysLoad`, so that the tools are offered from the first request on.
    """
    told = more or {"alwaysLoad": True}

    def form(server: McpServer) -> dict[str, object]:
        where = {"type": server.transport, "url": server.url, "timeout": TOOL_SECONDS * 1000}
        return {**where, **told, **bearer_header(server)}

    return {"mcpServers": {server.name: form(server) for server in servers}}


@contextmanager
def config_directory(name: str, *, env: Mapping[str, str] | None = None) -> Iterator[Path]:
    """`<tmp>/butler_<name>_<uuid>/`, private, and removed afterwards whatever happened inside.

    `<tmp>` is the runtime's own, TMPDIR in its `env`, or else this process's.
    """
    import tempfile

    base = Path((env or {}).get("TMPDIR") or tempfile.gettempdir())
    directory = base / f"butler_{_file_word(name)}_{uuid.uuid4()}"
    directory.mkdir(mode=0o700, parents=True)
    try:
        yield directory
    finally:
        import shutil  # takes 2 ms, and a start removes none

        shutil.rmtree(directory, ignore_errors=True)


def _as_server(name: str, given: McpServer | Mapping[str, object]) -> McpServer:
    if isinstance(given, McpServer):
        return given
    url = given.get("url")
    if not isinstance(url, str) or not url:
        raise UsageError(f"MCP server {name!r} has no url")
    token = given.get("token")
    said = given.get("type") or given.get("transport")
    # if nothing else says so, an address that ends in /sse does
    path = re.split("[?#]", url.partition("://")[2])[0]
    is_sse = said == "sse" or (not said and path.rstrip("/").endswith("/sse"))
    transport: Transport = "sse" if is_sse else "http"
    return McpServer(name, url, token if isinstance(token, str) else None, transport)


def _file_word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)
