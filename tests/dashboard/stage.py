"""A dashboard of its own for a test: server process, ticket, and plain HTTP to it."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_farm.disk import replace_file
from tests.waiting import wait_until

TOKEN = "architect-of-the-test"
_HOME = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Dashboard:
    """The listening socket is the test's, so that the server can end and come back under its port."""

    root: Path
    listening: socket.socket
    log: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        return int(self.listening.getsockname()[1])

    def start(self) -> None:
        with open(self.log, "ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.dashboard.serve", str(self.root), str(self.listening.fileno())],
                cwd=_HOME,
                env=dict(os.environ),
                pass_fds=[self.listening.fileno()],
                stdout=output,
                stderr=output,
            )
        wait_until(self._answers, timeout=120, what="the farm's server")

    def end(self) -> None:
        assert self.process is not None
        self.process.terminate()
        self.process.wait(60)

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.ask("GET", "/login").status == 200
        except OSError:
            return False

    @property
    def address(self) -> str:
        return f"http://localhost:{self.port}"

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str | None] | None = None,
        data: bytes | None = None,
    ) -> Answer:
        """As the architect's program, unless `headers` say otherwise; None takes a header away."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        standard: dict[str, str | None] = {
            "Host": f"localhost:{self.port}",
            "Authorization": f"Bearer {TOKEN}",
        }
        chosen = standard | dict(headers or {})
        content = json.dumps(body).encode() if data is None and body is not None else data
        try:
            connection.request(
                method, path, content, {name: value for name, value in chosen.items() if value is not None}
            )
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status == 200, answer.body
        return answer.json

    def post(self, path: str, body: object = None) -> Any:
        answer = self.ask("POST", path, body if body is not None else {})
        assert answer.status == 200, answer.body
        return answer.json

    def login_address(self) -> str:
        ticket = self.post("/api/tickets")["ticket"]
        return f"{self.address}/login#{ticket}"

    def log_in(self) -> dict[str, str]:
        """The headers of a page that is logged in."""
        ticket = self.post("/api/tickets")["ticket"]
        own = {"Authorization": None, "Origin": self.address}
        answer = self.ask("POST", "/api/login", {"ticket": ticket}, headers=own)
        assert answer.status == 200, answer.body
        assert "set-cookie" not in answer.headers
        return {"Authorization": f"Bearer {answer.json['login']}", "Origin": self.address}


@contextmanager
def serving(root: Path, *, token: str = TOKEN) -> Iterator[Dashboard]:
    state = root / ".agent-farm"
    state.mkdir(mode=0o700, exist_ok=True)
    (root / ".git/info").mkdir(exist_ok=True)
    replace_file(state / "architect.token", token)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(128)
        dashboard = Dashboard(root, listening, root.parent / "dashboard.log")
        dashboard.start()
        try:
            yield dashboard
        finally:
            dashboard.end()
