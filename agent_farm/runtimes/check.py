"""`af runtimes check NAME`: one real run against a server of our own, and what was seen of it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from agent_farm.errors import UsageError, nearest
from agent_farm.runtimes import adapter_names, get_adapter
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


@dataclass(frozen=True, slots=True)
class Report:
    name: str
    findings: tuple[Finding, ...]

    @property
    def good(self) -> bool:
        return all(finding.good for finding in self.findings)


def require_runtime(name: str, root: Path | None) -> RuntimeAdapter:
    try:
        return get_adapter(name, root)
    except ValueError as error:
        close = nearest(name, adapter_names(root))
        raise UsageError(str(error), hint=f"af runtimes check {close}" if close else "af runtimes") from error


def check_runtime(
    adapter: RuntimeAdapter,
    env: Mapping[str, str],
    *,
    declared: Sequence[str] = (),
    command: Sequence[str] | None = None,
    model: str | None = None,
) -> Report:
    """Whatever is wrong is a finding."""
    problem = adapter.problem(env, command=command, model=model)
    if problem:
        return Report(adapter.name, (Finding("usable", False, problem),))
    own = allowed_environment(env, key_names=adapter.cli.own_variables(env, model), declared=declared)
    with _probe_server() as probe, _private_directory() as directory:
        run = partial(_run, adapter, probe, env=own, directory=directory, command=command, model=model)
        first = run(adapter.cli.check_prompt or PROMPT.format(word=probe.word))
        findings = [Finding("usable", True), *_findings(adapter, probe, first)]
        if first.success and first.conversation_id:
            again = run(PROMPT_AGAIN, conversation_id=first.conversation_id, resume=True)
            findings.append(_resumed(first.conversation_id, again))
    return Report(adapter.name, tuple(findings))


def _run(
    adapter: RuntimeAdapter,
    probe: Probe,
    prompt: str,
    *,
    env: Mapping[str, str],
    directory: Path,
    **given: Any,
) -> RuntimeResult:
    import asyncio

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
    import tempfile

    with tempfile.TemporaryDirectory(prefix="af-check-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


def _resumed(conversation: str, result: RuntimeResult) -> Finding:
    """A second message in the same conversation, answered."""
    what = "resumed the conversation"
    if result.failure:
        return Finding(what, False, str(result.failure))
    return Finding(what, result.conversation_id == conversation, str(result.conversation_id))


def _findings(adapter: RuntimeAdapter, probe: Probe, result: RuntimeResult) -> list[Finding]:
    found = [Finding("ran", result.success, str(result.failure or f"in {result.seconds:g} s"))]
    if adapter.cli.calls_tools:
        found += [
            Finding("reached its one MCP server", bool(probe.seen)),
            Finding("sent the token and the session id", probe.allowed > 0 and not probe.refused),
            Finding("called the tool", probe.called > 0),
        ]
    return found


@dataclass
class Probe:
    """A small MCP server with one tool, and what it saw."""

    port: int = 0
    token: str = field(default_factory=lambda: os.urandom(16).hex())
    word: str = field(default_factory=lambda: os.urandom(4).hex())
    seen: list[str] = field(default_factory=list)
    allowed: int = 0
    refused: int = 0
    called: int = 0


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    probe: Probe


@contextmanager
def _probe_server() -> Iterator[Probe]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.probe = Probe(port=server.server_address[1])
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield server.probe
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """What it sees is in the probe."""

    def do_GET(self) -> None:
        self._answer(405, None)

    def do_DELETE(self) -> None:
        self._answer(200, {})

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        probe = cast(_Server, self.server).probe
        if self.headers.get("User-Agent") == USER_AGENT:  # we asked whether it is there: no word of the CLI
            self._answer(200, _rpc(probe, message))
            return
        probe.seen.append(str(message.get("method")))
        given = self.headers.get("Authorization") == f"Bearer {probe.token}"
        if not given or "runtime_session_id=check" not in self.path:
            probe.refused += 1
            self._answer(401, {"error": "unauthorized"})
            return
        probe.allowed += 1
        answer = _rpc(probe, message)
        self._answer(200 if answer else 202, answer)

    def _answer(self, code: int, document: dict[str, Any] | None) -> None:
        body = json.dumps(document).encode() if document is not None else b""
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _rpc(probe: Probe, message: dict[str, Any]) -> dict[str, Any] | None:
    if message.get("id") is None:
        return None
    head = {"jsonrpc": "2.0", "id": message["id"]}
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        version = params.get("protocolVersion", "2025-06-18")
        info = {"name": "farmcheck", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
        tool = {
            "name": "farm_check",
            "description": "Answers with the word it is given.",
            "inputSchema": schema,
        }
        result = {"tools": [tool]}
    elif method == "tools/call":
        probe.called += 1
        text = f"checked {(params.get('arguments') or {}).get('word')}"
        result = {"content": [{"type": "text", "text": text}]}
    elif method == "ping":
        result = {}
    else:
        return {**head, "error": {"code": -32601, "message": f"no method {method}"}}
    return {**head, "result": result}
