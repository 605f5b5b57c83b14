"""`af mcp` passes on what is said over stdio: calls side by side, cancelled ones, and over a server's end."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agent_farm.disk import make_directory
from agent_farm.server import bridge as bridging
from agent_farm.server import client
from agent_farm.server.address import ServerAddress, require_token, server_files
from agent_farm.server.stopping import stop_server
from tests.sessions.records import open_sessions
from tests.waiting import wait_until

Bridge = subprocess.Popen[str]


@pytest.fixture
def bridge(farm: Path) -> Iterator[Bridge]:
    with subprocess.Popen(
        [sys.executable, "-m", "agent_farm", "mcp"],
        cwd=farm,
        env=dict(os.environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0


def say(bridge: Bridge, message: Any) -> None:
    assert bridge.stdin is not None
    bridge.stdin.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
    bridge.stdin.flush()


def call(bridge: Bridge, id: int, tool: str, **arguments: Any) -> None:
    params = {"name": tool, "arguments": arguments}
    say(bridge, {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})


def heard(bridge: Bridge) -> dict[str, Any]:
    assert bridge.stdout is not None
    return dict(json.loads(bridge.stdout.readline()))


def test_a_call_that_takes_long_delays_no_other_and_is_given_up(farm: Path, bridge: Bridge) -> None:
    call(bridge, 1, "trigger", prompt="[[sleep:300]]")
    log = open_sessions(farm)
    (record,) = wait_until(lambda: log.find(states=["running"]), what="the session")
    call(bridge, 2, "state_set", key="a", value=1)
    assert (heard(bridge))["id"] == 2
    cancelled = {"requestId": 1, "reason": "enough"}
    say(bridge, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
    call(bridge, 3, "sessions_stop", session_ids=[record["id"]])
    answer = heard(bridge)  # of the call that was given up nothing is said
    (stopped,) = answer["result"]["structuredContent"]["stopped"]
    assert (answer["id"], stopped["state"]) == (3, "cancelled")


def test_it_goes_on_when_the_server_was_ended(farm: Path, bridge: Bridge) -> None:
    call(bridge, 1, "state_set", key="a", value="kept")
    assert not heard(bridge)["result"]["isError"]
    assert stop_server(farm)
    call(bridge, 2, "state_get", key="a")
    assert heard(bridge)["result"]["structuredContent"]["value"] == "kept"


def test_what_is_no_message_is_told_and_ends_nothing(farm: Path, bridge: Bridge) -> None:
    say(bridge, "")
    say(bridge, "{nonsense")
    assert heard(bridge)["error"]["code"] == -32700
    say(bridge, [{"jsonrpc": "2.0", "id": 7, "method": "ping"}])
    assert heard(bridge)["error"]["code"] == -32600
    for params in ([1], "x", {"requestId": {}}, None):
        say(bridge, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    call(bridge, 3, "state_list")
    assert heard(bridge)["result"]["structuredContent"] == {"version": 1, "state": {}}


def test_a_bug_is_an_answer_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*given: object) -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(bridging, "post", fail)
    answers = io.BytesIO()
    bridging.Bridge(tmp_path, answers).serve(io.BytesIO(b'{"jsonrpc": "2.0", "id": 7, "method": "ping"}\n'))
    answer = json.loads(wait_until(answers.getvalue, timeout=10, what="the answer"))
    assert (answer["id"], answer["error"]["code"]) == (7, -32603)
    assert "bug in af: RuntimeError: no such luck" in answer["error"]["message"]
    assert "Traceback" in caplog.text


def test_a_request_that_breaks_off_leaves_no_connection_open(
    farm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`af mcp` stays: what it does not close is open for as long as it runs."""
    files = server_files(farm)
    make_directory(files.address.parent)
    require_token(files)
    with socket.create_server(("127.0.0.1", 0)) as ending, ThreadPoolExecutor(1) as aside:
        address = ServerAddress(ending.getsockname()[1], files.token, time.time())
        monkeypatch.setattr(client, "ensure_server", lambda root: address)
        before = os.listdir("/dev/fd")
        aside.submit(lambda: ending.accept()[0].close())
        with pytest.raises(ConnectionError) as lost:
            client.post(farm, "/mcp", b"x" * 50_000_000, {})
        assert os.listdir("/dev/fd") == before
    assert lost.tb  # which keeps alive what was not closed
