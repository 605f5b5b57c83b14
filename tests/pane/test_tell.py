"""The targets of `notify.to`: each tells a person, or says why nobody can have noticed."""

from __future__ import annotations

import json
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from agent_farm.pane.pane_argv import tell_argv
from agent_farm.pane.tell import NotTold, shown_target, tell
from agent_farm.settings_keys import TOLD_HERE
from tests.pane.stage import Stage, notice
from tests.pane.test_report import HOOKS, report
from tests.tmux.stage import tmux
from tests.waiting import wait_until

FACTS = {"AF_BUILDER_ID": "task-1", "AF_STATE": "waiting", "AF_REASON": "May I? #(touch x) %H;"}


class Heard(HTTPServer):
    """A web server that remembers what it was sent; `/moved` leads elsewhere, `/drops` takes its time."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[tuple[str, dict[str, Any]]] = []
        self.logins: list[str | None] = []
        self.ended = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Heard

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append((self.path, body))
        self.server.logins.append(self.headers["Authorization"])
        if self.path == "/noise":
            self.wfile.write(b"SSH-2.0-x\r\n")
            return
        self.send_response(302 if self.path == "/moved" else 204)
        if self.path == "/moved":
            self.send_header("Location", "/elsewhere")
        for _ in range(80 if self.path == "/drops" else 0):
            self.send_header("X-Drop", "1")
            self.flush_headers()
            if self.server.ended.wait(0.1):
                break
        self.end_headers()

    def do_GET(self) -> None:
        self.server.bodies.append((self.path, {}))

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def heard() -> Iterator[Heard]:
    with Heard() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.ended.set()
        server.shutdown()


@pytest.fixture
def stage(tmp_path: Path, home: Path) -> Stage:
    return Stage(tmp_path)


def test_every_target_that_the_settings_take_is_known() -> None:
    for target in TOLD_HERE:
        with pytest.raises(NotTold):
            tell(target, FACTS, farm="farm", tmux=("false",))


def test_an_address_gets_the_facts_and_nothing_else(heard: Heard) -> None:
    tell(f"{heard.address}/secret", FACTS, farm="farm", tmux=())
    ((path, body),) = heard.bodies
    assert path == "/secret"
    assert set(body) == {"version", "farm", "builder", "runtime", "state", "event", "reason", "text"}
    assert (body["builder"], body["state"], body["event"]) == ("task-1", "waiting", None)
    assert body["text"].startswith("farm: task-1 waiting: May I?")


@pytest.mark.parametrize(
    ("login", "meant"), [("me:p%40ss%3a@", "me:p@ss:"), ("t0ken@", "t0ken:"), ("", None)]
)
def test_a_login_in_an_address_is_sent_as_one(heard: Heard, login: str, meant: str | None) -> None:
    tell(heard.address.replace("//", f"//{login}", 1) + "/hook@x", FACTS, farm="farm", tmux=())
    assert [path for path, _ in heard.bodies] == ["/hook@x"]
    assert heard.logins == [meant and f"Basic {b64encode(meant.encode()).decode()}"]


def test_a_redirect_is_not_followed(heard: Heard) -> None:
    with pytest.raises(NotTold, match="it answered 302"):
        tell(f"{heard.address}/moved", FACTS, farm="farm", tmux=())
    assert [path for path, _ in heard.bodies] == ["/moved"]


def test_one_that_answers_drop_by_drop_holds_up_nobody(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_farm.pane.tell.SECONDS", 1.0)
    with pytest.raises(NotTold, match="timed out"):
        tell(f"{heard.address}/drops", FACTS, farm="farm", tmux=())


def test_no_address_and_no_web_server_are_told_of_without_a_password(heard: Heard) -> None:
    with pytest.raises(NotTold, match=r"^it is not a valid address$"):
        tell("http://me:pass/word@127.0.0.1/", FACTS, farm="farm", tmux=())
    with pytest.raises(NotTold, match="does not answer like a web server"):
        tell(f"{heard.address}/noise", FACTS, farm="farm", tmux=())


def test_an_address_is_shown_without_its_secrets() -> None:
    assert shown_target("https://me:pass@example.com/hook/s3cret?t=1") == "https://example.com/…"
    assert shown_target("https://me:pass/word@example.com/hook") == "https://…"
    assert shown_target("https://example.com:81?to=me@s3cret") == "https://example.com:81/…"
    with pytest.raises(NotTold):
        tell("http://127.0.0.1:1/", FACTS, farm="farm", tmux=())


def test_tmux_shows_the_text_as_it_is_and_runs_nothing(stage: Stage) -> None:
    (stage.root / "cwd").mkdir()
    tmux("new-session", "-d", "-s", "looked-at", "-c", str(stage.root / "cwd"), "cat")
    tmux(
        "-L",
        "outer",
        "new-session",
        "-d",
        "-x",
        "150",
        "-s",
        "terminal",
        "env",
        "-u",
        "TMUX",
        "tmux",
        "attach",
    )
    wait_until(lambda: tmux("list-clients"), what="a client")
    tell("tmux", FACTS, farm="farm", tmux=("tmux",))
    wait_until(
        lambda: "farm: task-1 waiting: May I? #(touch x) %H;" in tmux("-L", "outer", "capture-pane", "-p"),
        what="the message",
    )
    assert not list(stage.root.glob("**/x"))
    assert "@af-notice" not in tmux("show-options", "-g")
    tell("bell", FACTS, farm="farm", tmux=("tmux",))


def test_a_hook_tells_the_targets_of_its_launch_file(stage: Stage, heard: Heard) -> None:
    where = notice(*tell_argv(stage.run)) | {"to": [heard.address, "desktop"], "tmux": [], "farm": "farm"}
    where["env"] = {"PATH": "/nowhere"}
    stage.write_launch(hooks=HOOKS, tell=where)
    report(stage, "UserPromptSubmit")
    report(stage, "PermissionRequest", {"tool_name": "Bash"})
    wait_until(lambda: heard.bodies, what="the word")
    assert heard.bodies[0][1]["reason"] == "Bash"
    log = stage.run / "tell.log"
    wait_until(lambda: "desktop: notify-send is not installed" in log.read_text(), what="the trouble")
    assert subprocess.run(["pgrep", "-f", heard.address], capture_output=True).returncode == 1
