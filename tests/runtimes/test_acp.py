"""ACP agents: how one is declared, what it is answered, what is made of what it tells, and its failures."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from agent_farm.runtimes.acp import AcpEvents
from agent_farm.runtimes.acp_rules import AskedCall, Rules, asked_of, option_for
from agent_farm.runtimes.external_config import RuntimeFileError, load_external_runtime
from agent_farm.runtimes.mcp_config import McpServer
from agent_farm.runtimes.origin import repository_program
from agent_farm.runtimes.process import Ended
from agent_farm.runtimes.result import RuntimeResult
from tests.conftest import Af
from tests.fake_api import FakeApi
from tests.runtimes.orders import make_start
from tests.runtimes.subjects import Subject, declared_acp_agent


def declare(root: Path, **entry: object) -> None:
    (root / "agent_runtime.json").write_text(json.dumps({"runtimes": {"mine": entry}}))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"acp": []}, "`runtimes.mine.acp`"),
        ({"acp": "goose acp"}, "`runtimes.mine.acp`"),
        ({"acp": ["../goose"]}, "leads out"),
        ({"acp": ["a\0b"]}, "NUL"),
        ({"acp": ["goose"], "env": ["A=b"]}, "`runtimes.mine.env[0]`"),
        ({"acp": ["goose"], "modes": {"some": "x"}}, "`runtimes.mine.modes`"),
        ({"acp": ["goose"], "envs": []}, "did you mean env"),
        ({"acp": ["goose"], "timeout_minutes": 0}, "`runtimes.mine.timeout_minutes`"),
    ],
)
def test_a_wrong_declaration_is_refused_by_name(tmp_path: Path, given: dict[str, object], why: str) -> None:
    declare(tmp_path, **given)
    with pytest.raises(RuntimeFileError) as caught:
        load_external_runtime(tmp_path, "mine")
    assert why in str(caught.value.why)


def test_a_person_agrees_to_the_command_its_files_and_its_environment(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("")
    command = ["python3", "agent.py", "--acp"]
    modes = {"ask": "yolo"}
    declare(tmp_path, acp=command, env=["MY_KEY"], set={"MODE": "a\nB=c"}, modes=modes, auth="key")
    asked = repository_program(tmp_path, "mine")
    assert asked is not None
    assert asked.content == (
        "python3 agent.py --acp\nMODE='a\nB=c'\nit gets MY_KEY\n"
        "with ask its mode is 'yolo'\nit logs in by 'key'"
    )
    assert asked.files == (tmp_path / "agent.py",)
    before = asked.fingerprint(tmp_path)
    (tmp_path / "agent.py").write_text("other")
    assert asked.fingerprint(tmp_path) != before


RULES = Rules(
    "edit", "farm-1a2b", "/w", ("/docs",), ("/docs/secret",), ("/w/CLAUDE.md",), ("sh skills/a.sh",)
)


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        (AskedCall("edit", ("write",), ("/w/a", "b/c")), "edit all"),
        (AskedCall("edit", ("write",), ("/w/../etc/a",)), "all"),
        (AskedCall("edit", ("write",), ("/docs/a",)), "all"),
        (AskedCall("delete", ("rm",), ("CLAUDE.md",)), "all"),
        (AskedCall("read", ("cat",), ("/docs/a",)), "ask edit all"),
        (AskedCall("read", ("cat",), ("/docs/secret/a",)), "all"),
        (AskedCall("read", ("cat",), ("/etc/passwd",)), "all"),
        (AskedCall("execute", ("x",), (), "make test"), "all"),
        (AskedCall("execute", ("x",), (), "sh skills/a.sh now"), "edit all"),
        (AskedCall("execute", ("x",), (), "sh skills/a.sh; rm -rf x"), "all"),
        (AskedCall("execute", ("farm-1a2b: send",), (), "rm"), "all"),
        (AskedCall("other", ("send (farm-1a2b MCP Server)",)), "ask edit all"),
        (AskedCall(None, ("farm-1a2b_send",)), "ask edit all"),
        (AskedCall("other", ("myfarm-1a2b",)), "all"),
        (AskedCall("fetch", ("get https://…",)), "all"),
    ],
)
def test_what_is_allowed(asked: AskedCall, allowed: str) -> None:
    for permissions in ("ask", "edit", "all"):
        found = replace(RULES, permissions=permissions).allow(asked)
        assert found == (permissions in allowed.split()), permissions


def test_a_link_lies_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "out").symlink_to(tmp_path)
    rules = Rules("edit", "farm", str(tmp_path / "w"))
    assert not rules.allow(AskedCall("edit", (), ("out/file",)))


def test_a_question_is_read_with_what_was_told_of_its_call_before() -> None:
    before = {"title": "farm-send", "kind": "other", "rawInput": {"command": "x"}}
    call = {"title": "send", "content": [{"type": "diff", "path": "/a"}], "locations": [{"path": "/b"}]}
    asked = asked_of(call, before)
    assert asked == AskedCall("other", ("farm-send", "send"), ("/b", "/a"), "x")


def test_the_answer_holds_for_this_once() -> None:
    kinds = ("allow_always", "allow_once", "reject_once")
    options = [{"kind": kind, "optionId": f"id-{kind}"} for kind in kinds]
    assert option_for(options, allowed=True) == "id-allow_once"
    assert option_for(options, allowed=False) == "id-reject_once"
    assert option_for(options[:2], allowed=False) is None


def told(tmp_path: Path, *updates: dict[str, object], **response: object) -> RuntimeResult:
    parser = AcpEvents(make_start(tmp_path, mode="headless"))
    parser.line(json.dumps({"type": "session", "id": "s1"}))
    for update in updates:
        parser.line(json.dumps({"type": "update", "update": update}))
    parser.line(json.dumps({"type": "done", "response": {"stopReason": "end_turn", **response}}))
    return parser.result(Ended(exit_code=0), None)


def says(text: str) -> dict[str, object]:
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}


def test_the_answer_is_what_is_said_after_the_last_tool(tmp_path: Path) -> None:
    call = {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "run", "rawInput": {"a": 1}}
    content = [{"type": "content", "content": {"type": "text", "text": "ok"}}]
    ended = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "1",
        "status": "completed",
        "content": content,
    }
    result = told(tmp_path, says("I will run it"), call, ended, says("do"), says("ne"))
    assert (result.output, result.turns, result.conversation_id) == ("done", 2, "s1")
    assert [(call.name, call.input, call.result) for call in result.tool_calls] == [("run", {"a": 1}, "ok")]


@pytest.mark.parametrize(
    ("response", "usage"),
    [
        (
            {"usage": {"totalTokens": 110, "inputTokens": 100, "outputTokens": 10, "cachedReadTokens": 60}},
            (40, 10, 60),
        ),
        (
            {"usage": {"totalTokens": 170, "inputTokens": 100, "outputTokens": 10, "cachedReadTokens": 60}},
            (100, 10, 60),
        ),
        ({"_meta": {"quota": {"token_count": {"input_tokens": 7, "output_tokens": 2}}}}, (7, 2, 0)),
        ({}, (0, 0, 0)),
    ],
)
def test_usage(tmp_path: Path, response: dict[str, object], usage: tuple[int, int, int]) -> None:
    found = told(tmp_path, says("done"), **response).usage
    assert (found.input_tokens, found.output_tokens, found.cache_read_tokens) == usage


def test_a_turn_that_ended_early_has_failed(tmp_path: Path) -> None:
    result = told(tmp_path, says("I cannot"), stopReason="refusal")
    assert (result.failure and result.failure.message) == "it ended its turn early: refusal"
    assert result.output == "I cannot"


def test_a_builder_of_one_is_refused_before_anything_exists(af: Af, repo: Path) -> None:
    declared_acp_agent(repo)
    refused = af("spawn", "Fix auth", "--runtime", "acp", "--yes")
    assert (refused.returncode, "cannot work in a pane" in refused.stderr) == (2, True)
    assert "af run --runtime acp" in refused.stderr
    assert not (repo / ".builders").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "entry", "kind", "message"),
    [
        (["no-http"], {}, "mcp-unreachable", "takes no MCP server over http"),
        (["login"], {}, "not-logged-in", "by-key (With a key)"),
        (["ends"], {}, "failed", "it has no home"),
        ([], {"timeout_minutes": 0.2}, "time-limit", "timeout_minutes"),
    ],
)
def test_it_says_what_is_wrong(
    repo: Path,
    tmp_path: Path,
    api: FakeApi,
    words: list[str],
    entry: dict[str, object],
    kind: str,
    message: str,
) -> None:
    adapter = declared_acp_agent(repo, *words, **entry)
    subject = Subject("acp", tmp_path, repo, api, adapter)
    result = asyncio.run(subject.invoke("[[sleep:60]]" if entry else "hello"))
    assert result.failure is not None
    assert result.failure.kind == kind
    assert message in result.failure.message
    cancelled = tmp_path / "runtime-home" / adapter.cli.binary / "cancelled"
    assert cancelled.exists() == (kind == "time-limit")


@pytest.mark.slow
def test_a_login_that_is_declared_is_used(repo: Path, tmp_path: Path, api: FakeApi) -> None:
    adapter = declared_acp_agent(repo, "login", auth="by-key")
    result = asyncio.run(Subject("acp", tmp_path, repo, api, adapter).invoke("hello"))
    assert result.failure is None


@pytest.mark.slow
def test_its_history_is_no_answer_and_without_session_load_it_cannot_go_on(
    repo: Path, tmp_path: Path, api: FakeApi
) -> None:
    first_one = Subject("acp", tmp_path, repo, api, declared_acp_agent(repo))
    id = asyncio.run(first_one.invoke("one")).conversation_id
    again = asyncio.run(first_one.invoke("[[say:two]]", conversation_id=id, resume=True))
    assert (again.failure, again.output) == (None, "two")
    unable = Subject("acp", tmp_path, repo, api, declared_acp_agent(repo, "no-load"))
    refused = asyncio.run(unable.invoke("three", conversation_id=id, resume=True))
    assert refused.failure is not None
    assert "it does not offer session/load" in refused.failure.message


@pytest.mark.slow
def test_af_run_asks_once_and_resumes(af: Af, repo: Path) -> None:
    declared_acp_agent(repo)
    first = json.loads(af("run", "--json", "--runtime", "acp", "--yes", "[[say:one]]").stdout)["result"]
    assert (first["success"], first["output"]) == (True, "one")
    again = af("run", "--json", "--resume", first["session_id"], "two")
    assert "message 2" in json.loads(again.stdout)["result"]["output"], again.stderr
    assert af("butler", "stop").returncode == 0


def test_more_than_one_server_is_refused(repo: Path, tmp_path: Path, api: FakeApi) -> None:
    subject = Subject("acp", tmp_path, repo, api, declared_acp_agent(repo))
    two = {name: McpServer(name, api.mcp_url("S1")) for name in ("a", "b")}
    result = asyncio.run(subject.invoke("hello", servers=two))
    assert result.failure is not None
    assert result.failure.kind == "refused-argument"
