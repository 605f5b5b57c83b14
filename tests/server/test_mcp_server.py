"""The MCP door, spoken to over HTTP: protocol, tools by token, what is recorded."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from agent_farm.ask.subagent_runner import SubagentRunner
from agent_farm.operations.table import load
from agent_farm.paths import FarmPaths
from agent_farm.server import mcp_door
from agent_farm.server.answering import OpenContext
from agent_farm.server.client import LINES
from agent_farm.server.tokens import mint_builder_token
from agent_farm.sessions.records import session_create
from agent_farm.sessions.session import Session
from tests.gitrepo import write_files
from tests.server.serving import ARCHITECT, Served, document_of, serving, tools_of
from tests.sessions.loop import in_loop

MODERN = "2026-07-28"
LISTENING = {"Authorization": f"Bearer {ARCHITECT}", "Accept": LINES}


def structured(result: dict[str, Any]) -> Any:
    assert not result.get("isError"), result
    return result["structuredContent"]


def result_of(answer: dict[str, Any]) -> Any:
    """What came of a session that a trigger waited for."""
    return structured(answer)["result"]


@in_loop
async def test_both_protocol_eras_are_served(repo: Path) -> None:
    async with serving(repo) as served:
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        old = await served.rpc("initialize", hello)
        assert document_of(old)["result"]["protocolVersion"] == "2025-11-25"
        assert document_of(old)["result"]["serverInfo"]["name"] == "health"
        assert "mcp-session-id" not in old.headers
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "server/discover"}
        new = await served.rpc("server/discover", {"_meta": meta}, headers=headers)
        assert MODERN in json.dumps(document_of(new)["result"]), new.text


@in_loop
async def test_unknown_methods_and_verbs(repo: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Clients ask for a stream of their own accord: `af run` has nothing to say of it on stderr."""
    async with serving(repo) as served:
        unknown = await served.rpc("server/nothing")
        assert document_of(unknown)["error"]["code"] == -32601
        for verb in ("GET", "DELETE"):
            headers = {"Authorization": f"Bearer {ARCHITECT}", "Accept": "text/event-stream"}
            response = await served.http.request(verb, served.url(), headers=headers)
            assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert "405" not in caplog.text


@in_loop
async def test_each_token_sees_and_calls_its_own_tools(repo: Path) -> None:
    builder = mint_builder_token(FarmPaths(repo).runs, "task-a")
    async with serving(repo) as served:
        session = served.tokens.mint_for_session("s-1")
        for token, named, wanted in (
            (session, "s-1", tools_of("session")),
            (builder, "task-a", tools_of("builder")),
            (ARCHITECT, None, tools_of("architect")),
        ):
            listed = await served.rpc("tools/list", token=token, session=named)
            assert {tool["name"] for tool in document_of(listed)["result"]["tools"]} == wanted
        refused = await served.call("trigger", {"prompt": "x"}, token=builder, session="task-a")
        assert refused["isError"]
        assert "not a tool for a builder" in refused["content"][0]["text"]
        refused = await served.call("prune", {}, token=session, session="s-1")
        assert refused["isError"]
        assert served.sessions.find() == []


@in_loop
async def test_state_and_schedules_through_tools(repo: Path) -> None:
    async with serving(repo) as served:
        structured(await served.call("state_set", {"key": "last_check", "value": "2026-02-09"}))
        assert structured(await served.call("state_get", {"key": "last_check"}))["value"] == "2026-02-09"
        assert structured(await served.call("state_list"))["state"] == {"last_check": "2026-02-09"}
        assert structured(await served.call("state_delete", {"key": "last_check"}))["deleted"] is True
        assert structured(await served.call("state_get", {"key": "last_check"}))["value"] is None
        made = await served.call(
            "schedule_create", {"name": "daily", "cron": "0 8 * * *", "prompt": "Digest"}
        )
        assert structured(made)["schedule"]["enabled"] is True
        changed = await served.call("schedule_update", {"name": "daily", "enabled": False})
        assert structured(changed)["schedule"]["next_due"] is None
        assert [one["name"] for one in structured(await served.call("schedule_list"))["schedules"]] == [
            "daily"
        ]
        wrong = await served.call("schedule_create", {"name": "bad", "cron": "99 * * * *", "prompt": "x"})
        assert wrong["isError"]
        assert "not a cron expression" in wrong["content"][0]["text"]
        structured(await served.call("schedule_delete", {"name": "daily"}))
        assert structured(await served.call("schedule_list"))["schedules"] == []


@in_loop
async def test_trigger_runs_a_session_and_returns_its_result(repo: Path) -> None:
    async with serving(repo) as served:
        result = result_of(await served.call("trigger", {"prompt": "Summarize [[say:all well]]"}))
        assert (result["success"], result["output"], result["error"]) == (True, "all well", None)
        record = served.sessions.get(result["session_id"])
        assert record["trigger_source"] == "external"
        context = {"prompt": "[[say:x]] Process this", "context": "User sent: hello"}
        result = result_of(await served.call("trigger", context))
        assert served.sessions.get(result["session_id"])["context"] == "User sent: hello"


@in_loop
async def test_a_failing_session_is_a_result_with_its_error(repo: Path) -> None:
    async with serving(repo) as served:
        result = result_of(await served.call("trigger", {"prompt": "[[error:overloaded]]"}))
        assert result["success"] is False
        assert "overloaded" in result["error"]


@in_loop
async def test_a_sessions_tool_calls_are_tied_to_it(repo: Path) -> None:
    async with serving(repo) as served:
        prompt = '[[mcp:state_set {"key": "a", "value": "1"}]] [[mcp:state_get {"key": "a"}]]'
        result = result_of(await served.call("trigger", {"prompt": prompt}))
        assert result["success"], result
        names = [(call["name"].rpartition("__")[2], call["served"]) for call in result["tool_calls"]]
        assert names == [("state_set", True), ("state_get", True)]
        rows = served.running.database.query("SELECT caller, name FROM served_calls ORDER BY number")
        assert [tuple(row) for row in rows] == [
            (result["session_id"], "state_set"),
            (result["session_id"], "state_get"),
        ]
        assert served.sessions.get(result["session_id"])["tool_calls"] == result["tool_calls"]


@in_loop
async def test_a_session_that_triggers_itself_is_refused_while_no_slot_is_free(repo: Path) -> None:
    async with serving(repo) as served:
        outer = result_of(await served.call("trigger", {"prompt": '[[mcp:trigger {"prompt": "inner"}]]'}))
        assert outer["success"]
        inner = json.loads(outer["tool_calls"][0]["result"])["result"]
        assert inner["success"] is False
        assert "slots are taken" in inner["error"]


@in_loop
async def test_with_a_free_slot_it_runs_as_its_child(repo: Path) -> None:
    toml = '[butler]\nruntime = "demo"\nmax_concurrent_sessions = 2\n'
    async with serving(repo, toml) as served:
        call = '[[mcp:trigger {"prompt": "[[say:deep]]"}]]'.replace("[[say:deep]]", "inner")
        outer = result_of(await served.call("trigger", {"prompt": call}))
        inner = json.loads(outer["tool_calls"][0]["result"])["result"]
        assert inner["success"], inner
        record = served.sessions.get(inner["session_id"])
        assert (record["trigger_source"], record["parent"]) == ("trigger", outer["session_id"])


@in_loop
async def test_the_official_client_over_http_and_over_sse(repo: Path) -> None:
    async with serving(repo) as served:
        session_token = served.tokens.mint_for_session("s-9")
        headers = {"Authorization": f"Bearer {session_token}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            streamable_http_client(served.url(session="s-9"), http_client=http) as streams,
        ):
            await _state_round(streams, "over http")
        async with sse_client(served.url("/sse", "s-9"), headers=headers) as streams:
            await _state_round(streams, "over sse")
        rows = served.running.database.query("SELECT DISTINCT caller FROM served_calls")
        assert [row["caller"] for row in rows] == ["s-9"]


async def _state_round(streams: Any, value: str) -> None:
    async with ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        await session.call_tool("state_set", {"key": "k", "value": value})
        answer = await session.call_tool("state_get", {"key": "k"})
        assert answer.structured_content["value"] == value


@in_loop
async def test_another_sessions_stream_cannot_be_written_to(repo: Path) -> None:
    async with serving(repo) as served:
        good = served.tokens.mint_for_session("s-1")
        async with sse_client(served.url("/sse", "s-1"), headers={"Authorization": f"Bearer {good}"}):
            other = served.tokens.mint_for_session("s-2")
            url = served.url("/messages/?session_id=" + "0" * 32)
            response = await served.http.post(url, json={}, headers={"Authorization": f"Bearer {other}"})
            assert response.status_code == 401


async def _ask_over_sse(served: Served, arguments: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {ARCHITECT}"}
    async with (
        sse_client(served.url("/sse"), headers=headers) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        await session.call_tool("trigger", arguments)


@pytest.mark.parametrize("over", ["http", "sse"])
@in_loop
async def test_the_sessions_a_client_stopped_waiting_for_go_on(repo: Path, over: str) -> None:
    async with serving(repo) as served:
        arguments = {"prompt": "[[sleep:0.6]] [[say:done]]"}
        if over == "sse":
            asking = asyncio.create_task(_ask_over_sse(served, arguments))
        else:
            params = {"name": "trigger", "arguments": arguments}
            asking = asyncio.create_task(served.rpc("tools/call", params))  # type: ignore[arg-type]
        while not served.sessions.find(states=["running"]):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        while not served.sessions.find(states=["completed"]):
            assert not served.sessions.find(states=["cancelled", "failed"])
            await asyncio.sleep(0.02)


@in_loop
async def test_a_verb_tells_what_goes_on_and_then_its_answer(repo: Path) -> None:
    async with serving(repo) as served:
        lines = await _lines(served, {"prompt": '[[mcp:state_get {"key": "a"}]]'})
        *told, answer = lines
        assert told[0]["told"].startswith("session ")
        assert [line["told"] for line in told[1:]] == ["demo runs", "  state_get"]
        assert answer["result"]["success"]
        assert answer["session_id"] == answer["result"]["session_id"]
        (failed,) = await _lines(served, {"prompt": "x", "runtime": "nothing"})
        assert failed["error"]["what"] == "No runtime nothing"


async def _lines(served: Served, body: dict[str, Any]) -> list[dict[str, Any]]:
    response = await served.http.post(served.url("/api/trigger"), json=body, headers=LISTENING)
    assert response.status_code == 200
    return [json.loads(line) for line in response.text.splitlines()]


@pytest.mark.parametrize(("attached", "state"), [(True, "cancelled"), (False, "completed")])
@in_loop
async def test_what_becomes_of_a_run_whose_caller_left(repo: Path, attached: bool, state: str) -> None:
    async with serving(repo) as served:
        body = {"prompt": "[[sleep:1]]", "attached": attached}
        url = served.url("/api/trigger")
        async with served.http.stream("POST", url, json=body, headers=LISTENING) as response:
            async for line in response.aiter_lines():
                if json.loads(line)["told"] == "demo runs":
                    break
        while not (ended := served.sessions.find(states=["cancelled", "completed", "failed"])):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        assert ended[0]["state"] == state


@in_loop
async def test_a_session_reads_the_records_of_its_own_butler_alone(repo: Path) -> None:
    async with serving(repo) as served:
        database = served.running.database
        for id, butler in (("c0ffee-1", "mail"), ("c0ffee-2", "health")):
            await session_create(
                database, Session(id=id, butler=butler, prompt="the PIN is 4711", runtime="demo")
            )
        token = served.tokens.mint_for_session("s-1")
        for asked in ("c0ffee-1", "c0ffee", "c"):
            answer = await served.call("sessions_get", {"session_id": asked}, token=token, session="s-1")
            seen = json.dumps(answer)
            assert "c0ffee-1" not in seen or answer["isError"], answer
            assert '"mail"' not in seen
        listed = structured(await served.call("sessions_list", {}, token=token, session="s-1"))
        assert [one["id"] for one in listed["sessions"]] == ["c0ffee-2"]
        whole = structured(await served.call("sessions_get", {"session_id": "c0ffee-1"}))
        assert whole["session"]["butler"] == "mail"


@in_loop
async def test_one_server_keeps_the_state_of_two_butlers_apart(repo: Path) -> None:
    write_files(repo, {f"codev/roster/{name}/butler.toml": "" for name in ("health", "mail")})
    async with serving(repo) as served:
        for name in ("health", "mail"):
            token = served.tokens.mint_for_session(name, name)
            own = {"token": token, "session": name}
            structured(await served.call("state_set", {"key": "who", "value": name}, **own))
            assert structured(await served.call("state_list", **own))["state"] == {"who": name}
        refused = await served.call("state_get", {"key": "who", "butler": "health"}, **own)
        assert "Only the architect can choose a butler" in refused["content"][0]["text"]
        read = structured(await served.call("state_get", {"key": "who", "butler": "health"}))
        assert read["value"] == "health"
        assert structured(await served.call("state_list"))["state"] == {}
        unknown = await served.call("state_set", {"key": "a", "value": 1, "butler": "helth"})
        assert "No butler helth\nDid you mean health?" in unknown["content"][0]["text"]


@in_loop
async def test_long_calls_hold_up_neither_status_nor_builders(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = threading.Event()

    def answer_late(runner: object, *, question: str, **more: object) -> dict[str, str]:
        end.wait(60)
        return {"answer": question}

    monkeypatch.setattr(SubagentRunner, "ask", answer_late)
    async with serving(repo) as served:
        asked = {"sources": ["x"], "question": "why"}
        many = (
            min(32, (os.cpu_count() or 1) + 4) + 8
        )  # more than any executor that they could share has threads
        calls = [asyncio.ensure_future(served.call("ask_sources", asked)) for _ in range(many)]
        try:
            for quick in ("list_sources", "status", "list_builders", "conflicts"):
                assert "isError" not in (done := await served.call(quick)) or not done["isError"], done
            assert not any(call.done() for call in calls)
        finally:
            end.set()
        assert [structured(await call) for call in calls] == [{"version": 1, "answer": "why"}] * many


@in_loop
async def test_state_holds_json_and_is_written_only_over_what_was_read(repo: Path) -> None:
    async with serving(repo) as served:
        value = {"open": [1, 2], "by": None}
        first = structured(await served.call("state_set", {"key": "todo", "value": value}))["revision"]
        read = structured(await served.call("state_get", {"key": "todo"}))
        assert (read["value"], read["revision"]) == (value, first)
        claim = {"key": "todo", "value": "mine", "if_revision": first}
        second = structured(await served.call("state_set", claim))["revision"]
        late = await served.call("state_set", claim)
        assert late["isError"]
        assert f"todo has revision {second}, not {first}" in late["content"][0]["text"]
        assert structured(await served.call("state_get", {"key": "todo"}))["value"] == "mine"
        await served.call("state_delete", {"key": "todo"})
        assert structured(await served.call("state_get", {"key": "todo"}))["revision"] == 0
        anew = structured(await served.call("state_set", {"key": "todo", "value": 1, "if_revision": 0}))
        assert anew["version"] not in (first, second)
        for stale in (first, second, 0):
            again = {"key": "todo", "value": 2, "if_revision": stale}
            assert (await served.call("state_set", again))["isError"]


@in_loop
async def test_every_tool_says_what_it_may_do_and_what_it_is_given(repo: Path) -> None:
    async with serving(repo) as served:
        tools = document_of(await served.rpc("tools/list"))["result"]["tools"]
        hints = {tool["name"]: tool["annotations"] for tool in tools}
        assert set(hints) == tools_of("architect")
        assert hints["status"]["readOnlyHint"]
        assert hints["prune"]["destructiveHint"]
        assert not hints["prune"]["readOnlyHint"]
        assert not any(hint["readOnlyHint"] and hint["destructiveHint"] for hint in hints.values())
        for tool in tools:
            for name, schema in tool["inputSchema"].get("properties", {}).items():
                assert schema.get("description"), (tool["name"], name)


@in_loop
async def test_wrong_arguments_are_told_in_plain_words(repo: Path) -> None:
    async with serving(repo) as served:
        missing = await served.call("state_set", {"value": 1})
        assert missing["content"][0]["text"] == "Invalid arguments for state_set\nkey is missing"
        choice = (await served.call("sessions_list", {"state": ["dead"]}))["content"][0]["text"]
        assert "state: no dead; it takes cancelled, completed" in choice
        gone = (await served.call("sessions_get", {"session_id": "nobody"}))["content"][0]["text"]
        assert gone == "No session nobody\nhint: af sessions"


@in_loop
async def test_a_session_is_started_without_waiting_and_stopped(repo: Path) -> None:
    async with serving(repo) as served:
        started = structured(await served.call("trigger", {"prompt": "[[sleep:600]]", "wait": False}))
        assert started["result"] is None
        id = started["session_id"]
        (stopped,) = structured(await served.call("sessions_stop", {"session_ids": [id]}))["stopped"]
        assert (stopped["state"], stopped["error"]) == ("cancelled", "Cancelled: stopped by the architect")
        again = await served.call("sessions_stop", {"session_ids": [id]})
        assert "has ended already" in again["content"][0]["text"]
        first = result_of(await served.call("trigger", {"prompt": "one"}))
        assert first["state"] == "completed"
        more = result_of(await served.call("trigger", {"prompt": "two", "resume": first["session_id"]}))
        assert "message 2" in more["output"]
        here = result_of(await served.call("trigger", {"prompt": "[[write:x.txt]]", "cwd": str(repo)}))
        assert here["success"]
        assert (repo / "x.txt").exists()


@in_loop
async def test_a_session_gives_another_no_more_than_it_has(repo: Path) -> None:
    async with serving(repo) as served:
        outer = result_of(await served.call("trigger", {"prompt": "hello"}))["session_id"]
        token = served.tokens.mint_for_session("s-1")
        own = {"token": token, "session": "s-1"}
        for choice in ({"permissions": "all"}, {"cwd": "/"}, {"runtime": "codex"}, {"resume": outer}):
            refused = await served.call("trigger", {"prompt": "x", **choice}, **own)
            assert refused["isError"], choice
        entry = {"name": "mine", "cron": "0 8 * * *", "prompt": "x"}
        assert (await served.call("schedule_create", {**entry, "cwd": "."}, **own))["isError"]
        structured(await served.call("schedule_create", {**entry, "cwd": "."}))
        assert (await served.call("schedule_update", {"name": "mine", "prompt": "evil"}, **own))["isError"]
        stranger = await served.call("sessions_stop", {"session_ids": [outer]}, **own)
        assert "not one that this session triggered" in stranger["content"][0]["text"]


@in_loop
async def test_a_session_gives_another_no_wider_permissions_than_its_own(repo: Path) -> None:
    child = '[[mcp:trigger {"prompt": "child", "wait": false}]]'
    schedule = '[[mcp:schedule_create {"name": "later", "cron": "0 8 * * *", "prompt": "x"}]]'
    async with serving(repo) as served:
        for permissions in ("ask", "edit"):
            asked = {"prompt": f"{child} {schedule}", "permissions": permissions}
            triggered, created = result_of(await served.call("trigger", asked))["tool_calls"]
            other = served.sessions.get(json.loads(triggered["result"])["session_id"])
            assert other["permissions"] == permissions
            assert created["is_error"] == (permissions == "ask"), created


@in_loop
async def test_a_long_call_tells_that_it_goes_on(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_door, "PROGRESS_SECONDS", 0.1)
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    async with serving(repo) as served:
        headers = {"Authorization": f"Bearer {ARCHITECT}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            streamable_http_client(served.url(), http_client=http) as (read, write, *_),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            await session.call_tool("trigger", {"prompt": "[[sleep:2]]"}, progress_callback=hear)
    assert (heard[0] or "").startswith("session ")
    assert "demo runs" in heard
    assert any((text or "").startswith("trigger: running for") for text in heard)


@in_loop
async def test_who_hears_nothing_meanwhile_reads_it_behind_the_answer(repo: Path) -> None:
    asked = {"ids": ["@idle"], "text": "hello"}

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        pass

    async with serving(repo) as served:
        answer, notes = (await served.call("send", asked))["content"]
        assert json.loads(answer["text"]) == {"version": 1, "deliveries": []}
        assert notes["text"] == "notes:\nNo builder is idle"
        headers = {"Authorization": f"Bearer {ARCHITECT}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            streamable_http_client(served.url(), http_client=http) as (read, write, *_),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            heard = await session.call_tool("send", asked, progress_callback=hear)
            assert len(heard.content) == 1


@in_loop
async def test_a_call_ends_that_tells_something_at_its_end(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a landing does that leaves uncommitted files behind and is then refused."""

    async def tell_and_end(
        name: str, arguments: object, caller: object, open_context: OpenContext
    ) -> CallToolResult:
        for _ in range(5):  # what passes it on is waiting by then
            await asyncio.sleep(0)
        open_context(load(name)).tell("something")
        await asyncio.sleep(0)
        return CallToolResult(content=[], structured_content={"version": 1})

    monkeypatch.setattr(mcp_door, "call_tool", tell_and_end)
    async with serving(repo) as served, asyncio.timeout(60):
        assert structured(await served.call("land_status", {})) == {"version": 1}


@in_loop
async def test_a_body_that_is_no_request_is_refused(repo: Path) -> None:
    async with serving(repo) as served:
        headers = {"Authorization": f"Bearer {ARCHITECT}"}
        for body in (
            [],
            "x",
            {"prompt": "x", "model": "a\0b"},
            {"prompt": "x", "cwd": 5},
            {},
            {"prompt": " "},
            {"prompt": "x", "source": "schedule:daily"},
        ):
            answer = await served.http.post(served.url("/api/trigger"), json=body, headers=headers)
            assert answer.status_code == 400, body
