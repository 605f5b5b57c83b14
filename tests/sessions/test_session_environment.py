"""What a session's runtime is given: one MCP server, the declared environment, nothing else."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from pathlib import Path

import pytest

from agent_farm.runtimes.result import RuntimeResult
from agent_farm.sessions.credential_store import CredentialStore
from tests.sessions.loop import in_loop
from tests.sessions.stage import Call, make_butler, make_stage

UNDECLARED = {f"SECRET_{n}": f"value-{n}" for n in range(50)}


@in_loop
async def test_the_one_server_is_the_butlers_own(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    result = await stage.spawner.trigger("x")
    (call,) = stage.script.calls
    assert call.server.name == "health"
    assert call.server.url == f"http://localhost:8001/mcp?runtime_session_id={result.session_id}"


@in_loop
async def test_sse_where_it_is_asked_for(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, transport="sse")
    await stage.spawner.trigger("x")
    (call,) = stage.script.calls
    assert call.server.url.startswith("http://localhost:8001/sse?runtime_session_id=")
    assert json.loads(call.config_text)["mcpServers"]["health"]["type"] == "sse"


@in_loop
async def test_the_config_file_and_its_directory(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    await asyncio.gather(stage.spawner.trigger("a"), stage.spawner.trigger("b"))
    first, second = stage.script.calls
    for call in (first, second):
        assert call.config.name == "mcp.json"
        assert re.fullmatch(r"butler_health_[0-9a-f-]{36}", call.config.parent.name)
        assert str(call.config.parent.parent) == tempfile.gettempdir()
        servers = json.loads(call.config_text)["mcpServers"]
        assert list(servers) == ["health"]
        assert servers["health"]["url"].startswith("http://localhost:8001/mcp?")
        assert not call.config.parent.exists()
    assert first.config.parent != second.config.parent


@in_loop
async def test_the_config_directory_goes_after_a_failure_and_after_a_cancellation(tmp_path: Path) -> None:
    hangs = asyncio.Event()

    async def act(call: Call) -> RuntimeResult:
        assert call.config_text
        if call.prompt == "raise":
            raise RuntimeError("SDK broke")
        hangs.set()
        await asyncio.sleep(30)
        return RuntimeResult()

    stage = make_stage(tmp_path, act)
    await stage.spawner.trigger("raise")
    hanging = asyncio.create_task(stage.spawner.trigger("hang"))
    await hangs.wait()
    await stage.spawner.drain(timeout=0)
    await hanging
    assert len(stage.script.calls) == 2
    assert not [call.config for call in stage.script.calls if call.config.parent.exists()]


@in_loop
async def test_each_session_has_a_token_of_its_own_that_ends_with_it(tmp_path: Path) -> None:
    async def act(call: Call) -> RuntimeResult:
        token = call.server.token or ""
        caller = stage.tokens.caller(token, call.env["AF_SESSION"])
        assert caller is not None
        assert (caller.kind, caller.id) == ("session", call.env["AF_SESSION"])
        assert token not in call.config_text
        assert [name for name, value in call.env.items() if token in value] == ["AF_MCP_TOKEN"]
        return RuntimeResult()

    stage = make_stage(tmp_path, act)
    results = [await stage.spawner.trigger(name) for name in ("a", "b")]
    assert [result.error for result in results] == [None, None]
    tokens = [call.server.token or "" for call in stage.script.calls]
    assert tokens[0] != tokens[1]
    for token, result in zip(tokens, results, strict=True):
        assert stage.tokens.caller(token, result.session_id) is None


@in_loop
async def test_undeclared_variables_do_not_reach_a_session(tmp_path: Path) -> None:
    environ = {
        "PATH": "/usr/bin",
        "HOME": "/home/x",
        "LC_ALL": "C.UTF-8",
        "SCRIPTED_API_KEY": "own",
        "OPENAI_API_KEY": "another vendor's",
        "NEEDED": "1",
        "WANTED": "2",
        "MODULE_TOKEN": "3",
        "AF_MCP_TOKEN": "of whoever started this server",
        "TRACEPARENT": "00-" + "1" * 32 + "-" + "2" * 16 + "-01",
        **UNDECLARED,
    }
    butler = make_butler(
        tmp_path,
        required_env=("NEEDED",),
        optional_env=("WANTED", "ABSENT"),
        module_credentials=("MODULE_TOKEN",),
    )
    stage = make_stage(tmp_path, butler=butler, environ=environ)
    result = await stage.spawner.trigger("x")
    given = dict(stage.script.calls[0].env)
    # Its own trace, where another test of this process has set up tracing; never the server's.
    assert given.pop("TRACEPARENT", None) != environ["TRACEPARENT"]
    assert given == {
        "PATH": "/usr/bin",
        "HOME": "/home/x",
        "LC_ALL": "C.UTF-8",
        "SCRIPTED_API_KEY": "own",
        "NEEDED": "1",
        "WANTED": "2",
        "MODULE_TOKEN": "3",
        "AF_SESSION": result.session_id,
        "AF_BUTLER": "health",
        "AF_MCP_TOKEN": stage.script.calls[0].server.token,
    }


@in_loop
async def test_stored_credentials_come_before_the_environment(tmp_path: Path) -> None:
    environ = {"PATH": "/usr/bin", "SCRIPTED_API_KEY": "from the environment", "WANTED": "env"}
    stage = make_stage(
        tmp_path, butler=make_butler(tmp_path, optional_env=("WANTED", "STORED_ONLY")), environ=environ
    )
    store = CredentialStore(stage.database, environ, tmp_path / "key")
    store.set("SCRIPTED_API_KEY", "from the database")
    store.set("STORED_ONLY", "kept")
    store.set("NOT_DECLARED", "never given")
    await stage.spawner.trigger("x")
    env = stage.script.calls[0].env
    assert (env["SCRIPTED_API_KEY"], env["WANTED"], env["STORED_ONLY"]) == (
        "from the database",
        "env",
        "kept",
    )
    assert "NOT_DECLARED" not in env


@in_loop
async def test_a_missing_required_variable_stops_the_session_before_anything_starts(tmp_path: Path) -> None:
    butler = make_butler(tmp_path, required_env=("HEALTH_API", "PATH"))
    stage = make_stage(tmp_path, butler=butler, environ={"PATH": "/usr/bin"})
    result = await stage.spawner.trigger("x")
    assert not result.success
    assert "HEALTH_API" in (result.error or "")
    assert stage.script.calls == []
    assert stage.only_record()["state"] == "failed"


@in_loop
async def test_a_missing_include_is_the_sessions_error(tmp_path: Path) -> None:
    butler = make_butler(tmp_path, claude_md="<!-- @include shared/GONE.md -->")
    stage = make_stage(tmp_path, butler=butler)
    result = await stage.spawner.trigger("x")
    assert "shared/GONE.md" in (result.error or "")
    assert stage.script.calls == []


@pytest.mark.parametrize("name", ["switchboard", "relationship", "general"])
@in_loop
async def test_no_other_butler_is_in_the_config(tmp_path: Path, name: str) -> None:
    make_butler(tmp_path, name)
    stage = make_stage(tmp_path)
    await stage.spawner.trigger("x")
    assert name not in stage.script.calls[0].config_text
