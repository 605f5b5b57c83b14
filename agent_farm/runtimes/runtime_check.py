"""`af runtimes check NAME`: runs the runtime for real against a server of our own, and says what was seen."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.environment import allowed_environment
from agent_farm.runtimes.mcp_config import McpServer
from agent_farm.runtimes.mcp_probe import USER_AGENT
from agent_farm.runtimes.result import RuntimeResult

SECONDS = 180.0
PROMPT = (
    "This is a test of your tools. Call the tool farm_check, of the MCP server farmcheck, once, with the "
    'argument word="{word}". Then answer with the text it gives you and nothing else.'
)
ROLE = "You are asked by a program. Be brief."
PROMPT_AGAIN = "That is all. Answer with the word done and nothing else."


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    good: bool
    detail: str = ""


def check_runtime(
    adapter: RuntimeAdapter,
    env: Mapping[str, str],
    *,
    declared: Sequence[str] = (),
    command: Sequence[str] | None = None,
    model: str | None = None,
) -> tuple[Finding, ...]:
    """Anything that is wrong becomes a finding."""
    problem = adapter.problem(env, command=command, model=model)
    if problem:
        return (Finding("usable", False, problem),)
    own = allowed_environment(env, key_names=adapter.cli.own_variables(env, model), declared=declared)
    with _served() as probe, _private_directory() as directory:
        run = partial(_run, adapter, probe, env=own, directory=directory, command=command, model=model)
        first = run(adapter.cli.check_prompt or PROMPT.format(word=probe.word))
        findings = [Finding("usable", True), *_findings(adapter, probe, first)]
        if first.success and first.conversation_id:
            again = run(PROMPT_AGAIN, conversation_id=first.conversation_id, resume=True)
            findings.append(_resumed(first.conversation_id, again))
    return tuple(findings)


def _run(
    adapter: RuntimeAdapter,
    probe: Probe,
    prompt: str,
    *,
    env: Mapping[str, str],
    directory: Path,
    **given: Any,
) -> RuntimeResult:
    url = f"http://localhost:{probe.port}/mcp?runtime_session_id=check"
    server = McpServer("farmcheck", url, probe.token)
    desk, home = directory / "desk", directory / "home"
    desk.mkdir(exist_ok=True)
    invoked = adapter.invoke(
        prompt, ROLE, {"farmcheck": server}, env, cwd=desk, home=home, timeout=SECONDS, **given
    )
    return asyncio.run(invoked)


@contextmanager
def _private_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="af-check-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


def _resumed(conversation: str, result: RuntimeResult) -> Finding:
    """Whether a second message in the same conversation was answered."""
    what = "resumed the conversation"
    if result.failure:
        return Finding(what, False, str(result.failure))
    return Finding(what, result.conversation_id == conversation, str(result.conversation_id))


def _findings(adapter: RuntimeAdapter, probe: Probe, result: RuntimeResult) -> list[Finding]:
    found = [Finding("ran", result.success, str(result.failure or f"in {result.seconds:g} s"))]
    if adapter.cli.calls_tools:
        found += [
            Finding("reached its one MCP server", bool(probe.seen)),
            Finding("sent the token and the session id", bool(probe.seen) and not probe.refused),
            Finding("called the tool", "tools/call" in probe.seen),
        ]
    return found


@dataclass
class Probe:
    """What a small MCP server with one tool saw: evidence that does not depend on what the CLI says."""

    port: int = 0
    token: str = field(default_factory=lambda: os.urandom(16).hex())
    word: str = field(default_factory=lambda: os.urandom(4).hex())
    seen: list[str] = field(default_factory=list)
    refused: int = 0


@contextmanager
def _served() -> Iterator[Probe]:
    probe = Probe()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, probe))
    server.daemon_threads, server.block_on_close = True, False
    probe.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield probe
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, probe: Probe, *given: Any) -> None:
        self.probe = probe
        super().__init__(*given)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing: what it sees is in the probe."""

    def do_GET(self) -> None:
        self._answer(405)

    def do_DELETE(self) -> None:
        self._answer(200, {})

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        probe, method = self.probe, str(message.get("method"))
        is_clis = self.headers.get("User-Agent") != USER_AGENT
        if is_clis:
            probe.seen.append(method)
        allowed = self.headers.get("Authorization") == f"Bearer {probe.token}"
        if not allowed or "runtime_session_id=check" not in self.path:
            probe.refused += is_clis
            self._answer(401)
        elif message.get("id") is None:
            self._answer(202)
        else:
            self._answer(200, {"jsonrpc": "2.0", "id": message["id"], **_reply(method, message)})

    def _answer(self, code: int, document: Mapping[str, object] | None = None) -> None:
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _reply(method: str, message: Mapping[str, Any]) -> dict[str, object]:
    params = message.get("params") or {}
    word = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    tool = {"name": "farm_check", "description": "Answers with the word it is given.", "inputSchema": word}
    said = f"checked {(params.get('arguments') or {}).get('word')}"
    replies: dict[str, dict[str, object]] = {
        "initialize": {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "farmcheck", "version": "1"},
        },
        "tools/list": {"tools": [tool]},
        "tools/call": {"content": [{"type": "text", "text": said}]},
        "ping": {},
    }
    if method in replies:
        return {"result": replies[method]}
    return {"error": {"code": -32601, "message": f"no method {method}"}}
