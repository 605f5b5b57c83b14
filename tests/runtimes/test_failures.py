"""What goes wrong around a headless run is in its result, too; nothing of it is raised."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_farm.runtimes import get_adapter, headless_run
from agent_farm.runtimes.mcp_config import McpServer
from agent_farm.runtimes.result import RuntimeResult

WHOLE = """
print('{"type": "start", "conversation_id": "c1"}')
print('{"type": "tool", "name": "n", "input": {}, "result": "r", "is_error": false}')
"""
STRANGE = WHOLE + 'print(\'{"type": "tool", "name": "half of an event"}\')\n'
ENDLESS = WHOLE + "print('x' * (65 << 20))\n"


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    (tmp_path / "desk").mkdir()
    return tmp_path / "desk"


def says(desk: Path, code: str) -> tuple[str, ...]:
    """A command that prints what it likes in the place of the demo agent."""
    program = desk.parent / "program.py"
    program.write_text(code)
    return (sys.executable, str(program))


def run(desk: Path, **given: Any) -> RuntimeResult:
    servers = given.pop("servers", {})
    env = given.pop("env", {"PATH": "/usr/bin:/bin", "TMPDIR": str(desk.parent / "tmp")})
    adapter = get_adapter(given.pop("name", "demo"))
    return asyncio.run(adapter.invoke("hello", "", servers, env, **{"cwd": desk, **given}))


@pytest.mark.parametrize(("code", "why"), [(STRANGE, "'tool'.*KeyError"), (ENDLESS, "too long to be read")])
def test_output_that_cannot_be_read_fails_the_run_and_keeps_what_came_before(
    desk: Path, code: str, why: str
) -> None:
    result = run(desk, command=says(desk, code))
    assert result.failure is not None
    assert result.failure.kind == "failed"
    assert (result.conversation_id, [call.result for call in result.tool_calls]) == ("c1", ["r"])
    import re

    assert re.search(why, result.failure.message)


def test_a_run_that_goes_on_and_on_is_ended_and_keeps_what_came_before(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headless_run, "MOST_CALLS", 20)
    tool = WHOLE.splitlines()[2]
    code = f"{WHOLE}\nwhile True:\n    {tool}\n"
    result = run(desk, command=says(desk, code), timeout=100)
    assert result.failure is not None
    assert "it did not stop" in result.failure.message
    assert (result.conversation_id, len(result.tool_calls)) == ("c1", 21)


def test_a_ledger_that_cannot_be_written_fails_the_run_and_keeps_what_came_before(desk: Path) -> None:
    """Where a CLI tells totals only, what a conversation has cost so far is kept beside it."""
    home = desk.parent / "runtime-home"
    home.mkdir()
    (home / "totals").write_text("in the way")
    code = """
import json
say = lambda **event: print(json.dumps(event))
say(type="thread.started", thread_id="t1")
say(type="item.completed", item={"id": "1", "type": "agent_message", "text": "all done"})
say(type="turn.completed", usage={"input_tokens": 5})
"""
    env = {"PATH": "/usr/bin:/bin", "TMPDIR": str(desk.parent / "tmp"), "CODEX_API_KEY": "k"}
    result = run(desk, name="codex", command=says(desk, code), home=home, env=env)
    assert result.failure is not None
    assert result.failure.kind == "failed"
    assert (result.output, result.conversation_id) == ("all done", "t1")


def test_a_directory_that_is_not_there_is_said_by_name(desk: Path) -> None:
    result = run(desk, cwd=desk / "gone")
    assert result.failure is not None
    assert result.failure.kind == "refused-argument"
    assert str(desk / "gone") in result.failure.message


def test_a_place_for_temporary_files_that_cannot_be_used(desk: Path) -> None:
    (desk / "file").write_text("")
    result = run(desk, env={"PATH": "/usr/bin:/bin", "TMPDIR": str(desk / "file")})
    assert result.failure is not None
    assert result.failure.kind == "failed"
    assert str(desk / "file") in result.failure.message


def test_two_servers_are_refused(desk: Path) -> None:
    servers = {name: McpServer(name, "http://localhost:1/mcp") for name in ("one", "two")}
    result = run(desk, servers=servers)
    assert result.failure is not None
    assert result.failure.kind == "refused-argument"
    assert "one, two" in result.failure.message
    assert run(desk, servers={"one": {"type": "http"}}).error == "MCP server 'one' has no url"


def test_words_that_no_process_can_take(desk: Path) -> None:
    result = run(desk, runtime_args=["x" * 140_000])
    assert result.failure is not None
    assert result.failure.kind == "refused-argument"
    assert "Argument list too long" in result.failure.message
