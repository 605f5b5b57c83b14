"""A session belongs to its caller's trace, through every door, with OpenTelemetry and without."""

from __future__ import annotations

import json
import subprocess
import sys
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from agent_farm.server.stopping import stop_server
from agent_farm.sessions.telemetry import parse_traceparent
from tests.conftest import Af
from tests.server.serving import ARCHITECT, document_of, serving
from tests.sessions.loop import in_loop
from tests.sessions.records import open_sessions
from tests.sessions.test_end_to_end import collector

pytestmark = pytest.mark.slow

TRACE, SPAN = "a1" * 16, "b2" * 8
GIVEN = f"00-{TRACE}-{SPAN}-01"
MALFORMED = (
    "",
    "nonsense",
    f"00-{TRACE}-{SPAN}",
    f"00-{TRACE}-{SPAN}-01-more",
    f"ff-{TRACE}-{SPAN}-01",
    f"00-{'0' * 32}-{SPAN}-01",
    f"00-{TRACE}-{'0' * 16}-01",
    f"00-{TRACE.upper()}-{SPAN}-01",
    f"{GIVEN}\r\nX-Other: 1",
)
PASSED_ON = """
import asyncio, sys
from pathlib import Path
from agent_farm.sessions import telemetry
from tests.sessions.stage import make_stage

async def main():
    stage = make_stage(Path(sys.argv[1]))
    with telemetry.continued(sys.argv[2]):
        result = await stage.spawner.trigger("x")
    assert stage.script.calls[0].env["TRACEPARENT"] == sys.argv[2]
    assert result.trace_id == stage.only_record()["trace_id"] == sys.argv[2].split("-")[1]
    assert (await stage.spawner.trigger("later")).trace_id is None

asyncio.run(main())
loaded = [name for name in sys.modules if name.startswith("opentelemetry")]
assert not loaded, loaded
"""
assert collector  # a fixture


@pytest.mark.parametrize("text", MALFORMED)
def test_what_is_malformed_is_no_trace(text: str) -> None:
    assert parse_traceparent(text) is None


def test_a_later_version_may_say_more() -> None:
    trace = parse_traceparent(f"01-{TRACE}-{SPAN}-01-more")
    assert trace is not None
    assert trace.trace_id == TRACE


def test_without_opentelemetry_it_is_passed_on_as_it_came(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PASSED_ON, str(tmp_path), GIVEN],
        cwd=Path(__file__).parents[2],
        timeout=60,
        check=False,
    )
    assert done.returncode == 0


@pytest.mark.parametrize("words", [("run",), ("trigger",)])
def test_the_environments_trace_is_the_sessions(farm: Path, af: Af, words: tuple[str, ...]) -> None:
    done = af(*words, "--json", "[[env:TRACEPARENT]]", env={"TRACEPARENT": GIVEN})
    result = json.loads(done.stdout)["result"]
    assert result["trace_id"] == TRACE
    assert result["tool_calls"][0]["result"] == "set"
    assert open_sessions(farm).get(result["session_id"])["trace_id"] == TRACE
    for malformed in MALFORMED[1:]:
        done = af(*words, "--json", "[[env:TRACEPARENT]]", env={"TRACEPARENT": malformed})
        result = json.loads(done.stdout)["result"]
        assert (result["trace_id"], result["tool_calls"][0]["result"]) == (None, "unset")


@pytest.mark.parametrize("word", ["run", "trigger"])
def test_exported_spans_continue_it(farm: Path, af: Af, collector: ThreadingHTTPServer, word: str) -> None:
    env = {
        "TRACEPARENT": GIVEN,
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_address[1]}",
    }
    result = json.loads(af(word, "--json", "[[say:x]]", env=env).stdout)["result"]
    assert result["trace_id"] == TRACE
    stop_server(farm)  # flushes
    sent = b"".join(body for _, body in collector.received)  # type: ignore[attr-defined]
    assert b"butler.trigger" in sent
    assert bytes.fromhex(TRACE) in sent
    assert bytes.fromhex(SPAN) in sent  # as the parent


@in_loop
async def test_the_header_of_each_http_door_is_continued(repo: Path) -> None:
    async with serving(repo) as served:
        called = await served.rpc(
            "tools/call",
            {"name": "trigger", "arguments": {"prompt": "[[env:TRACEPARENT]]"}},
            headers={"traceparent": GIVEN},
        )
        inner = json.loads(document_of(called)["result"]["content"][0]["text"])["result"]
        assert (inner["trace_id"], inner["tool_calls"][0]["result"]) == (TRACE, "set")
        headers = {"Authorization": f"Bearer {ARCHITECT}", "traceparent": GIVEN}
        body = {"prompt": "[[env:TRACEPARENT]]"}
        response = await served.http.post(served.url("/api/trigger"), json=body, headers=headers)
        assert response.json()["result"]["trace_id"] == TRACE
        untraced = await served.call("trigger", {"prompt": "[[env:TRACEPARENT]]"})
        after = json.loads(untraced["content"][0]["text"])["result"]
        assert after["trace_id"] != TRACE
