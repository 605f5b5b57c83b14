"""The server: what is asked is recorded, then handed to the provider whose path it is."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from tests.fake_api import anthropic, chat, gemini, mcp, responses
from tests.fake_api.script import USAGE_IN, directives

TOKEN = "token-of-this-session"
MODELS = ("claude-sonnet-4-5", "gpt-5.2-codex", "fake-model")


@dataclass(frozen=True)
class Recorded:
    method: str
    path: str
    headers: dict[str, str]
    body: Any
    at: float

    @property
    def text(self) -> str:
        return json.dumps(self.body, ensure_ascii=False)


@dataclass
class FakeApi:
    port: int = 0
    token: str = TOKEN
    requests: list[Recorded] = field(default_factory=list)
    sse: dict[str, mcp.SseSession] = field(default_factory=dict)
    fail_with: int | None = None  # every question to a model ends with this HTTP code
    tools_take: float = 0.0  # seconds
    run_directory: Path | None = None  # where it notes, as the farm's server does, that it told its tools

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def mcp_url(self, session: str) -> str:
        return f"http://localhost:{self.port}/mcp?runtime_session_id={session}"

    def asked(self, path: str) -> list[Recorded]:
        """Requests whose path, query included, holds `path`."""
        return [request for request in self.requests if path in request.path]

    def mcp_calls(self, method: str = "tools/call") -> list[Recorded]:
        return [request for request in self.asked("/mcp") if _method(request.body) == method]

    def model_requests(self) -> list[Recorded]:
        """What went to a model, its side questions (titles and the like) included."""
        paths = ("/v1/messages", "awPredict", "/responses", "/chat/completions", "enerateContent")
        return [r for r in self.requests if r.method == "POST" and any(p in r.path for p in paths)]

    def model_text(self) -> str:
        return "\n".join(request.text for request in self.model_requests())


@contextmanager
def fake_api(port: int = 0) -> Iterator[FakeApi]:
    api = FakeApi()
    server = _Server(("127.0.0.1", port), _Handler)
    server.api = api
    api.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    api: FakeApi

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no event."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def api(self) -> FakeApi:
        return cast(_Server, self.server).api

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.send_json({})

    def do_DELETE(self) -> None:
        self._record(None)
        self.send_json({})

    def do_GET(self) -> None:
        self._record(None)
        path = urlsplit(self.path)
        if path.path == "/sse":
            mcp.open_sse(self, path.query)
        elif path.path == "/mcp":
            self.send_empty(405, {"Allow": "POST"})
        elif path.path.endswith("/models"):
            self.send_json(_models())
        else:
            self.send_json({"error": {"message": "not found", "type": "not_found_error"}}, 404)

    def do_POST(self) -> None:
        body = _parsed(self._read_body())
        self._record(body)
        with suppress(BrokenPipeError, ConnectionResetError):
            self._route(urlsplit(self.path).path, urlsplit(self.path).query, body)

    def _route(self, path: str, query: str, body: Any) -> None:
        if path == "/mcp":
            mcp.answer_http(self, query, body)
        elif path == "/messages":
            mcp.answer_sse(self, query, body)
        elif path.endswith("/messages/count_tokens"):
            self.send_json({"input_tokens": USAGE_IN})
        elif path.endswith("/messages") or "awPredict" in path:
            anthropic.answer(self, body)
        elif path.endswith("/responses"):
            responses.answer(self, body)
        elif path.endswith("/chat/completions"):
            chat.answer(self, body)
        elif ":generateContent" in path or ":streamGenerateContent" in path:
            gemini.answer(self, body, stream="stream" in path)
        elif ":countTokens" in path:
            self.send_json({"totalTokens": USAGE_IN})
        else:
            self.send_json({}, 404)

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            raw = self._read_chunks()
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(raw) if self.headers.get("Content-Encoding") == "gzip" else raw

    def _read_chunks(self) -> bytes:
        raw = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            raw += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline() not in (b"\r\n", b""):
            pass
        return raw

    def _record(self, body: Any) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.api.requests.append(Recorded(self.command, self.path, headers, body, time.time()))

    # what providers answer with
    def held_or_failed(self, prompt: str, result: str | None, error: Any, limit: Any = None) -> bool:
        """Carry out [[sleep]], [[error]] and [[limit]]; True when that was the answer."""
        wanted = directives(prompt) if result is None else {}
        time.sleep(float(wanted.get("sleep", 0)))
        code = int(wanted.get("error") or self.api.fail_with or 0)
        if code:
            self.send_json(error(code), code)
        elif limit and "limit" in wanted:
            body, headers = limit(int(wanted["limit"]))
            self.send_json(body, 429, headers)
            return True
        return bool(code)

    def send_json(self, answer: Any, code: int = 200, headers: dict[str, str] | None = None) -> None:
        raw = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def send_empty(self, code: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def start_events(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def send_event(self, data: Any, event: str | None = None) -> None:
        text = data if isinstance(data, str) else json.dumps(data)
        self.wfile.write(((f"event: {event}\n" if event else "") + f"data: {text}\n\n").encode())
        self.wfile.flush()


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw or b"{}")
    except ValueError:
        return {"not-json": raw[:200].hex()}


def _method(body: Any) -> str | None:
    return body.get("method") if isinstance(body, dict) else None


def _models() -> dict[str, Any]:
    kinds = {"object": "model", "type": "model", "owned_by": "fake", "created": 1}
    data = [
        {"id": name, "display_name": name, "created_at": "2025-01-01T00:00:00Z", **kinds} for name in MODELS
    ]
    return {"object": "list", "models": [], "has_more": False, "data": data}
