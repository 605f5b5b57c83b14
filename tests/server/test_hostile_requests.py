"""What callers say over HTTP and MCP that nothing can be done with is answered in words, and is no bug."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from agent_farm.disk import file_lock
from agent_farm.errors import AgentFarmError
from agent_farm.operations.operation import Nothing
from agent_farm.server import client
from agent_farm.server.address import ServerAddress, require_token, server_files, store_address
from agent_farm.server.api import MOST_BYTES
from agent_farm.sessions.records import session_create
from agent_farm.sessions.session import Session
from tests.conftest import Af
from tests.server.serving import ARCHITECT, Served, document_of, serving
from tests.sessions.loop import in_loop

HALF = r"\ud800"
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
SCHEDULE = '"name": "often", "cron": "* * * * *"'


async def post(served: Served, verb: str, body: str) -> tuple[int, dict[str, object]]:
    headers = {"Authorization": f"Bearer {ARCHITECT}", "Content-Type": "application/json"}
    response = await served.http.post(served.url(f"/api/{verb}"), content=body, headers=headers)
    return response.status_code, response.json()


@in_loop
async def test_what_no_record_can_hold_is_refused(repo: Path) -> None:
    async with serving(repo) as served:
        for verb, body in (
            ("state_set", f'{{"key": "a{HALF}", "value": 1}}'),
            ("state_set", f'{{"key": "a", "value": "{HALF}"}}'),
            ("schedule_create", f'{{{SCHEDULE}, "prompt": "{HALF}"}}'),
            ("schedule_create", f'{{{SCHEDULE}, "prompt": "x", "late": 1e400}}'),
            ("schedule_create", '{"name": "often", "cron": "* * * * * *", "prompt": "x"}'),
            ("schedule_create", f'{{{SCHEDULE}, "prompt": "x", "cwd": "../.."}}'),
            ("schedule_create", f'{{{SCHEDULE}, "prompt": "x", "cwd": "nowhere"}}'),
            ("credentials_set", f'{{"name": "A_KEY", "value": "{HALF}"}}'),
            ("sessions_stop", f'{{"session_ids": ["{HALF}"]}}'),
            ("sessions_prune", f'{{"keep": {1 << 70}}}'),
            ("trigger", f'{{"prompt": "x", "max_turns": {1 << 70}}}'),
            ("trigger", '{"prompt": "x", "timeout": 1e400}'),
            ("trigger", "[" * 100_000),
        ):
            status, answer = await post(served, verb, body)
            assert (status, answer["error"]["code"]) == (400, "usage"), (verb, body[:80], answer)  # type: ignore[index]
        assert served.sessions.find() == []


@in_loop
async def test_what_is_nested_too_deeply_for_a_record_is_refused_and_recorded(repo: Path) -> None:
    async with serving(repo) as served:
        token = served.tokens.mint_for_session("s-1", "health")
        await session_create(
            served.butlers.database, Session(id="s-1", butler="health", prompt="p", runtime="demo")
        )
        value: object = 1
        for _ in range(600):
            value = [value]
        params = {"name": "state_set", "arguments": {"key": "k", "value": value}, "_meta": META}
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "state_set"}
        said = await served.rpc("tools/call", params, token=token, session="s-1", headers=headers)
        result = document_of(said)["result"]
        assert result["isError"] is True
        assert "more than 100 lists and objects" in result["content"][0]["text"]
        (call,) = served.sessions.get("s-1")["tool_calls"]
        assert (call["name"], call["input"]["key"], call["is_error"]) == ("state_set", "k", True)


@in_loop
async def test_null_is_a_value_like_others(repo: Path) -> None:
    async with serving(repo) as served:
        await served.call("state_set", {"key": "a", "value": 1})
        kept = (await served.call("state_set", {"key": "a", "value": None}))["structuredContent"]
        assert (await served.call("state_get", {"key": "a"}))["structuredContent"] == kept
        assert kept["value"] is None


def test_a_time_without_end_is_no_number_of_seconds(repo: Path, af: Af) -> None:
    endless = af("run", "--runtime", "demo", "--timeout", "inf", "x")
    assert (endless.returncode, "'inf' is not a length of time" in endless.stderr) == (2, True)


def test_a_server_that_is_stuck_holds_up_no_command_for_ever(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "BEGIN_SECONDS", 0.2)
    files = server_files(repo)
    with file_lock(files.lock), socket.create_server(("127.0.0.1", 0)) as stuck:
        require_token(files)
        address = ServerAddress(stuck.getsockname()[1], files.token, 0.0, pid=os.getpid())
        store_address(files, address)
        with pytest.raises(AgentFarmError, match="does not answer"):
            client.ask_server(repo, "tick", Nothing(), print)


def test_a_prompt_that_is_too_large_is_refused_in_words(repo: Path, af: Af) -> None:
    large = af("run", "--runtime", "demo", "-", input="x" * (MOST_BYTES + 1))
    assert (large.returncode, large.stderr) == (1, f"error: The body is larger than {MOST_BYTES} bytes\n")


def test_a_request_that_is_no_utf8_is_refused_in_words(farm: Path, af: Af) -> None:
    stopped = af("sessions", "stop", "\udcff")
    assert (stopped.returncode, "is not UTF-8 text" in stopped.stderr) == (2, True), stopped
