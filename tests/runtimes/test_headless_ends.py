"""How a headless run ends when the CLI says nothing in its own form, or is let see nothing."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_farm.runtimes import RuntimeResult, get_adapter
from agent_farm.runtimes.lines import refused_reading
from agent_farm.runtimes.mcp_config import as_servers
from agent_farm.runtimes.result import ToolCall

DENIED = "Claude requested permissions to read from /x, but you haven't granted it yet."


def codex_that(tmp_path: Path, script: str) -> Mapping[str, str]:
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}", "CODEX_API_KEY": "k", "HOME": str(tmp_path)}


def run_codex(tmp_path: Path, script: str, *, model: str | None = None) -> RuntimeResult:
    env = codex_that(tmp_path, script)
    return asyncio.run(get_adapter("codex").invoke("x", "", {}, env, cwd=tmp_path, model=model))


def test_plain_words_on_standard_output_are_the_reason(tmp_path: Path) -> None:
    result = run_codex(tmp_path, "cat >/dev/null; echo 'You have reached your usage limit.'; exit 1")
    assert result.error == "You have reached your usage limit."


def test_an_error_of_a_form_of_its_own_is_told_as_it_came(tmp_path: Path) -> None:
    event = json.dumps({"type": "turn.failed", "error": {"code": "weird"}})
    result = run_codex(tmp_path, f"cat >/dev/null; echo '{event}'; exit 1")
    assert "weird" in (result.error or "")


def test_a_line_that_nests_too_deep_is_no_event(tmp_path: Path) -> None:
    (tmp_path / "deep").write_text("[" * 200_000 + "\nbroken\n")
    assert run_codex(tmp_path, f"cat >/dev/null; cat {tmp_path}/deep; exit 1").error == "broken"


def test_nul_in_an_argument_is_refused_and_leaks_nothing(tmp_path: Path) -> None:
    run_codex(tmp_path, "exit 0")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        result = run_codex(tmp_path, "exit 0", model="a\0b")
        assert "contains NUL" in (result.error or "")
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("given", "transport"),
    [
        ({"url": "http://localhost:8001/sse"}, "sse"),
        ({"url": "http://localhost:8001/sse?runtime_session_id=1"}, "sse"),
        ({"url": "http://localhost:8001/sse", "type": "http"}, "http"),
        ({"url": "http://localhost:8001/mcp"}, "http"),
    ],
)
def test_an_address_that_ends_in_sse_is_spoken_to_as_that(given: dict[str, object], transport: str) -> None:
    (server,) = as_servers({"health": given})
    assert server.transport == transport


def test_a_run_that_was_let_read_nothing_is_told() -> None:
    denied = ToolCall("Read", {"file_path": "/x"}, DENIED, is_error=True)
    blocked = ToolCall("Bash", {"command": "grep -r TODO /x"}, "grep in '/x' was blocked.", is_error=True)
    read = ToolCall("Read", {"file_path": "/y"}, "text")
    missing = ToolCall("Read", {"file_path": "/z"}, "File does not exist.", is_error=True)
    state = ToolCall("mcp__farm__state_get", {"key": "a"}, "1")
    built = ToolCall("Bash", {"command": "make"}, "This command requires approval", is_error=True)
    assert refused_reading([denied, blocked, state]) == DENIED
    for fine in ([], [state], [denied, read], [missing], [missing, denied], [built]):
        assert refused_reading(fine) is None
