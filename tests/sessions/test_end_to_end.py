"""The whole way, real processes all along: `af`, the server, a builder in tmux, a collector of traces."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.server.serving import tools_of
from tests.sessions.records import open_sessions
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs" / "butler.md"


def test_a_spawned_builder_talks_through_the_farms_server(farm: Path, af: Af) -> None:
    task = '[[mcp:ask_architect {"question": "Which port?"}]] [[mcp:trigger {"prompt": "x"}]]'
    done = af("spawn", "--json", task, env={"AF_SERVER": "on"})
    assert done.returncode == 0, done.stderr
    id = json.loads(done.stdout)["builder"]["id"]

    def status() -> dict[str, str]:
        found: dict[str, str] = json.loads(af("status", id, "--json").stdout)["builders"][0]["status"]
        return found

    wait_until(lambda: status()["reason"] == "Which port?", what="the question")
    screen = wait_until(
        lambda: (text := af("capture", id).stdout) and "not a tool for a builder" in text and text,
        what="the refusal of trigger",
    )
    assert "trigger" in screen
    assert "Refused builder" in af("butler", "logs").stdout
    assert open_sessions(farm).find() == []


class Collector(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, body))  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    server.received = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_spans_are_exported_when_configured(farm: Path, af: Af, collector: ThreadingHTTPServer) -> None:
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_address[1]}"}
    prompt = '[[env:TRACEPARENT]] [[mcp:state_get {"key": "a"}]]'
    done = af("run", "--json", prompt, env=env)
    result = json.loads(done.stdout)["result"]
    assert result["success"], done.stderr
    assert len(result["trace_id"]) == 32
    assert result["tool_calls"][0]["result"] == "set"
    assert af("butler", "stop").returncode == 0  # flushes
    received = collector.received  # type: ignore[attr-defined]
    assert {path for path, _ in received} == {"/v1/traces"}
    sent = b"".join(body for _, body in received)
    assert bytes.fromhex(result["trace_id"]) in sent
    for name in (b"butler.trigger", b"runtime.invoke", b"tools/call state_get"):
        assert name in sent, name


def test_without_configuration_nothing_is_traced(farm: Path, af: Af) -> None:
    result = json.loads(af("run", "--json", "[[env:TRACEPARENT]]").stdout)["result"]
    assert result["trace_id"] is None
    assert result["tool_calls"][0]["result"] == "unset"


def test_credentials_from_the_command_line(farm: Path, af: Af) -> None:
    assert af("credentials", "set", "MAIL_TOKEN", input="hidden-value\n").returncode == 0
    listed = af("credentials", "list")
    assert "MAIL_TOKEN" in listed.stdout
    everything = listed.stdout + listed.stderr + af("credentials", "list", "--json").stdout
    assert "hidden-value" not in everything
    assert af("credentials", "set", "A=b").returncode == 2
    assert af("credentials", "unset", "MAIL_TOKN").returncode == 1
    assert af("credentials", "unset", "MAIL_TOKEN").returncode == 0


def test_schedules_from_the_command_line(farm: Path, af: Af) -> None:
    assert af("schedule", "add", "daily", "0 8 * * *", "Digest").returncode == 0
    assert "daily" in af("schedule", "list").stdout
    assert json.loads(af("schedule", "disable", "daily", "--json").stdout)["schedule"]["enabled"] is False
    wrong = af("schedule", "add", "bad", "every day", "x")
    assert (wrong.returncode, "not a cron expression" in wrong.stderr) == (2, True)
    assert af("schedule", "history", "daily").returncode == 0
    assert af("schedule", "remove", "daily").returncode == 0
    assert af("schedule", "remove", "daily").returncode == 1


def test_mistakes_on_the_command_line(farm: Path, af: Af, tmp_path: Path) -> None:
    for words, code, text in (
        (("run", " "), 2, "prompt is empty"),
        (("run", "x", "--runtime", "dmo"), 2, "Did you mean demo"),
        (("run", "x", "--max-turns", "0"), 2, "max-turns"),
        (("run", "x", "--cwd", str(tmp_path / "none")), 2, "does not exist"),
        (("run", "x", "--butler", "nobody"), 1, "No butler nobody"),
        (("trigger", "x", "--butler", "nobody"), 1, "No butler nobody"),
        (("sessions", "nothing"), 1, "No session nothing"),
        (("sessions", "--state", "done"), 2, "'done' is not one of"),
        (("sessions", "--since", "yesterday"), 2, "not an age"),
        (
            ("sessions", "3f2a", "--state", "running"),
            2,
            "ID cannot be combined with --state\nhint: af sessions show",
        ),
        (("butler", "logs"), 1, "has never run"),
    ):
        done = af(*words)
        assert (done.returncode, text in done.stderr) == (code, True), (words, done.stderr)
        assert "Traceback" not in done.stderr


def test_the_table_in_the_docs_is_the_one_in_force() -> None:
    documented: dict[str, set[str]] = {"session": set(), "builder": set(), "architect": set()}
    for line in DOCS.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[0].startswith("`"):
            names = {word.split("(")[0].strip("`") for word in cells[0].split("` `")}
            for kind, cell in zip(documented, cells[1:], strict=True):
                documented[kind] |= names if cell.startswith("yes") else set()
    architects = documented.pop("architect")
    assert documented == {kind: tools_of(kind) for kind in ("session", "builder")}
    assert architects == tools_of("architect") & (tools_of("session") | tools_of("builder"))


@pytest.mark.parametrize("word", ["run", "trigger"])
def test_a_session_sees_none_of_fifty_undeclared_variables(farm: Path, af: Af, word: str) -> None:
    secrets = {f"SECRET_{number}": "leak" for number in range(50)}
    prompt = " ".join(f"[[env:{name}]]" for name in (*secrets, "PATH"))
    done = af("run", "--json", "--max-turns", "100", prompt, env=secrets)
    calls = json.loads(done.stdout)["result"]["tool_calls"]
    assert [call["result"] for call in calls] == ["unset"] * 50 + ["set"]


def test_the_server_fires_a_schedule(farm: Path, af: Af) -> None:
    assert af("butler", "start").returncode == 0
    assert af("schedule", "add", "minutely", "* * * * *", "[[say:tick]]").returncode == 0
    log = open_sessions(farm)
    (record,) = wait_until(
        lambda: log.find(source="schedule:minutely", states=["completed"]), timeout=90, what="the schedule"
    )
    assert record["output"] == "tick"
    wait_until(
        lambda: f"completed, session {record['id'][:8]}" in af("schedule", "history", "minutely").stdout,
        what="the history",
    )
