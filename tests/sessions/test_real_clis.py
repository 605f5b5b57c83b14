"""The real CLIs as headless sessions of a butler: each calls tools of its own server, and only there."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_farm.farm.farm import open_farm
from agent_farm.farm.listing import list_builders
from agent_farm.sessions.state_store import StateStore
from tests.fake_api import FakeApi, fake_api
from tests.gitrepo import commit_files, write_files
from tests.runtimes.real.clis import BIN, CLIS, require_clis
from tests.server.serving import Served, serving

TOML = '[butler]\nruntime = "{runtime}"\nmax_concurrent_sessions = 2\n[butler.env]\noptional = {names}\n'


def calls_of(result: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [call for call in result["tool_calls"] if call.get("served") and call["name"].endswith(name)]


@pytest.mark.runtimes
@pytest.mark.parametrize("runtime", ["claude-code", "codex", "gemini"])
def test_it_calls_state_set_and_trigger(repo: Path, monkeypatch: pytest.MonkeyPatch, runtime: str) -> None:
    require_clis()
    with fake_api() as api:
        for name, value in CLIS[runtime].environment(api).items():
            monkeypatch.setenv(name, value)
        asyncio.run(_talk(repo, runtime, api))


async def _talk(repo: Path, runtime: str, api: FakeApi) -> None:
    names = json.dumps([name for name in CLIS[runtime].keys if not name.endswith("_KEY")])
    toml = TOML.format(runtime=runtime, names=names)
    async with serving(repo, toml) as served:
        given = json.dumps({"key": "from", "value": runtime})
        kept = await _trigger(served, f"[[call:state_set {given}]]")
        assert len(calls_of(kept, "state_set")) == 1
        assert StateStore(served.running.database, served.running.name).get("from") == runtime
        outer = await _trigger(served, '[[call:trigger {"prompt": "Say something"}]]')
        (call,) = calls_of(outer, "trigger")
        inner = served.sessions.find()[0]
        assert (inner["trigger_source"], inner["parent"], inner["state"]) == (
            "trigger",
            outer["session_id"],
            "completed",
        ), call
        assert "FAKE-OK" in inner["output"]
        refused = [record for record in served.sessions.find() if not record["success"]]
        assert refused == []


async def _trigger(served: Served, prompt: str) -> dict[str, Any]:
    result = await _result_of(served, prompt=prompt)
    assert result["success"], result
    return result


async def _result_of(served: Served, **arguments: str) -> dict[str, Any]:
    served.http.timeout = 120
    called = await served.call("trigger", arguments)
    result: dict[str, Any] = called["structuredContent"]["result"]
    return result


@pytest.mark.runtimes
@pytest.mark.parametrize("runtime", ["claude-code", "codex", "gemini"])
def test_it_runs_a_skill_and_writes_in_its_directory(
    repo: Path, monkeypatch: pytest.MonkeyPatch, runtime: str
) -> None:
    require_clis()
    skill = "codev/roster/health/skills/daily-review/run.sh"
    write_files(repo, {skill: "#!/bin/sh\necho reviewed > reviewed.txt\necho review done\n"})
    (repo / skill).chmod(0o755)
    with fake_api() as api:
        for name, value in CLIS[runtime].environment(api).items():
            monkeypatch.setenv(name, value)
        asyncio.run(_work(repo, runtime))
    assert (repo / "codev/roster/health/reviewed.txt").read_text() == "reviewed\n"
    assert (repo / "codev/roster/health/note.txt").exists()


async def _work(repo: Path, runtime: str) -> None:
    names = json.dumps([name for name in CLIS[runtime].keys if not name.endswith("_KEY")])
    async with serving(repo, TOML.format(runtime=runtime, names=names)) as served:
        ran = await _trigger(served, "[[shell:skills/daily-review/run.sh]]")
        assert "review done" in json.dumps(ran), ran
        await _trigger(served, "[[write:note.txt]]")


@pytest.mark.runtimes
def test_claude_can_be_the_architect_over_stdio(repo: Path, tmp_path: Path) -> None:
    require_clis()
    server = {
        "command": sys.executable,
        "args": ["-m", "agent_farm", "mcp"],
        "cwd": str(repo),
        "env": dict(os.environ),
    }
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"farm": {"type": "stdio", "alwaysLoad": True, **server}}}))
    task = json.dumps({"task": "Greet", "runtime": "demo"})
    with fake_api() as api:
        done = subprocess.run(
            [
                *(str(BIN / "claude"), "-p", "--strict-mcp-config", "--mcp-config", str(config)),
                *("--setting-sources", "", "--permission-mode", "acceptEdits", "--allowedTools", "mcp__farm"),
                *("--", f"[[call:spawn {task}]]"),
            ],
            cwd=repo,
            env={**os.environ, **CLIS["claude-code"].environment(api)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    builders = list_builders(open_farm(repo), with_git=False)
    assert [builder.record.runtime for builder in builders] == ["demo"], done.stdout


@pytest.mark.runtimes
def test_claude_sees_the_checkout_it_is_asked_about(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_clis()
    commit_files(repo, {"docs/todo.md": "TODO-ONE\n"})
    with fake_api() as api:
        for name, value in CLIS["claude-code"].environment(api).items():
            monkeypatch.setenv(name, value)
        asyncio.run(_ask_about(repo))
        assert f"the checkout at `{repo}`" in api.model_text()


async def _ask_about(repo: Path) -> None:
    names = json.dumps([name for name in CLIS["claude-code"].keys if not name.endswith("_KEY")])
    async with serving(repo, TOML.format(runtime="claude-code", names=names)) as served:
        for asked in (
            f'[[call:Read {{"file_path": "{repo}/docs/todo.md"}}]]',
            f"[[shell:cat {repo}/docs/todo.md]]",
        ):
            assert "TODO-ONE" in json.dumps(await _trigger(served, asked))
        secret = repo / ".agent-farm" / "butler.db"
        result = await _result_of(served, prompt=f'[[call:Read {{"file_path": "{secret}"}}]]')
        assert (result["success"], result["failure"]) == (False, "failed")
        assert "denied everything" in result["error"]
        first = await _trigger(served, "remember this")
        second = await _result_of(served, prompt="go on", resume=first["session_id"])
        assert second["conversation_id"] == first["conversation_id"]
        assert "n=2" in second["output"]
