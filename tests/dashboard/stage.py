"""The farm's real server for a test module: started, asked over plain HTTP, and cleared between two tests."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import end_tmux_servers
from tests.gitrepo import git


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
    """The farm's server, as `af dash` starts it."""

    root: Path
    port: int = 0

    def start(self) -> None:
        done = self._af("dash", "--no-browser", "--json")
        assert done.returncode == 0, done.stderr
        self.port = int(json.loads(done.stdout)["address"].split(":")[2].split("/")[0])

    def end(self) -> None:
        done = self._af("butler", "stop")
        assert done.returncode == 0, done.stderr

    def require(self) -> None:
        """A test may have ended it."""
        try:
            assert self.ask("GET", "/login").status == 200
        except OSError:
            self.start()

    @property
    def pid(self) -> int:
        return int(json.loads((self.root / ".agent-farm/server.json").read_text())["pid"])

    @property
    def token(self) -> str:
        return (self.root / ".agent-farm/architect.token").read_text().strip()

    @property
    def log(self) -> Path:
        return self.root / ".agent-farm/butler.log"

    def _af(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "agent_farm", *args],
            cwd=self.root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip

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
            "Authorization": f"Bearer {self.token}",
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


FIRST = "refs/test/first"


def clear(root: Path, home: Path) -> None:
    """The farm as it was when `FIRST` was set, under a server that goes on."""
    state = root / ".agent-farm"
    end_tmux_servers(Path(os.environ["TMUX_TMPDIR"]))
    for place in (
        root / ".builders",
        root / ".git/worktrees",
        state / "runs",
        state / "trash",
        home / ".config",
    ):
        shutil.rmtree(place, ignore_errors=True)
    (state / "registry.json").unlink(missing_ok=True)
    git(root, "checkout", "-qf", "main")
    git(root, "reset", "-q", "--hard", FIRST)
    git(root, "clean", "-qfd")
    for ref in git(root, "for-each-ref", "--format=%(refname)").splitlines():
        if ref not in ("refs/heads/main", FIRST):
            git(root, "update-ref", "-d", ref)
    if (state / "butler.db").exists():
        _empty(state / "butler.db")


def _empty(file: Path) -> None:
    with closing(sqlite3.connect(file, timeout=60)) as database, database:
        for name in ("sessions", "served_calls", "schedules", "fires"):
            database.execute(f"DELETE FROM {name}")


@contextmanager
def listening_at(port: int) -> Iterator[socket.socket]:
    """Somebody else at a port that the server has left."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen(128)
        yield other
