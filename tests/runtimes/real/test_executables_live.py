"""The shipped executables with the CLIs that they are made for, by hand and as runtimes of a repository."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.mcp_config import McpServer
from agent_farm.runtimes.result import RuntimeResult
from tests.fake_api import FakeApi
from tests.runtimes.real.clis import CLIS, require_clis
from tests.waiting import wait_until

pytestmark = pytest.mark.runtimes

CLI_OF = {"claude-mcp": "claude-code", "codex-cli": "codex", "github-copilot": "copilot"}
MARK = "AF_TEST_MARK"


@dataclass
class Desk:
    """A worktree with decoys, and the executable as someone with these settings runs it."""

    name: str
    worktree: Path
    root: Path
    api: FakeApi
    servers: dict[str, object] = field(default_factory=dict)  # by hand, of the project

    @property
    def env(self) -> dict[str, str]:
        cli = CLIS[CLI_OF[self.name]]
        return {**os.environ, **cli.environment(self.api), MARK: str(self.root)}

    @property
    def brief(self) -> Path:
        return self.root / "session_auth_brief.md"

    @property
    def state(self) -> Path:
        return self.root / "lego_state_auth.json"

    def call(self, *words: str) -> str:
        argv = [sys.executable, "-m", "agent_farm", "adapter", self.name, *words]
        done = subprocess.run(
            argv, cwd=self.worktree, env=self.env, capture_output=True, text=True, check=False, timeout=120
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.strip()

    def spawn(self, prompt: str) -> str:
        self.brief.write_text("# LEGO: Authentication\n\nBRIEF-MARK\n")
        (self.worktree / ".mcp.json").write_text(json.dumps({"mcpServers": self.servers}))
        return self.call("spawn", str(self.brief), str(self.state), prompt)

    def wait_for(self, session: str, status: str) -> None:
        ends = (status, "completed", "failed")
        told = wait_until(lambda: self._status_in(session, ends), what=f"status {status}")
        assert told == status, self.log(session)

    def _status_in(self, session: str, wanted: tuple[str, ...]) -> str | None:
        told = self.call("check_status", session)
        return told if told in wanted else None

    def log(self, session: str) -> str:
        place = self.root / "repo" / ".agent-farm" / "sessions" / session / "adapter.log"
        return place.read_text()

    def processes(self) -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if _is_marked(process, str(self.root))]


def _is_marked(process: psutil.Process, mark: str) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == mark
    except (psutil.Error, OSError):
        return False


@pytest.fixture(params=sorted(CLI_OF))
def desk(
    request: pytest.FixtureRequest, worktree: Path, home: Path, tmp_path: Path, api: FakeApi
) -> Iterator[Desk]:
    require_clis()
    with (home / ".codex" / "config.toml").open("r+") as file:  # codex takes no address from its environment
        servers = file.read()
        file.seek(0)
        provider = f'{{name="fake",base_url="{api.url}/v1",env_key="CODEX_API_KEY",wire_api="responses"}}'
        file.write(f'model_provider="fake"\nmodel_providers.fake={provider}\n{servers}')
    made = Desk(request.param, worktree, tmp_path, api)
    yield made
    for process in made.processes():
        process.kill()


def test_a_session_works_ends_and_goes_on(desk: Desk) -> None:
    hostile = "$(touch x) `touch x` 'a' \"b\"\n\ttab 🐝 \\ %s"
    session = desk.spawn(f"-rf {hostile} [[shell:touch made.txt]]")
    desk.wait_for(session, "completed")
    assert (desk.worktree / "made.txt").exists(), desk.log(session)
    assert not (desk.worktree / "x").exists()
    heard = _heard(desk.api)
    assert hostile in heard
    assert "BRIEF-MARK" in heard
    state = json.loads(desk.state.read_text())
    assert (state["lego_name"], state["status"], state["failure_count"]) == ("auth", "completed", 0)
    assert state["artifacts"] == ["made.txt"], "the CLI left files of its own, or made.txt is missing"

    seen = len(desk.api.requests)
    assert desk.call("resume", session, str(desk.state), "and once more") == f"resumed {session}"
    desk.wait_for(session, "completed")
    newest = "\n".join(_strings([request.body for request in desk.api.requests[seen:]]))
    assert "and once more" in newest
    assert hostile in newest
    wait_until(lambda: not desk.processes(), what="no process to be left")


def test_by_hand_claude_uses_the_projects_own_servers(desk: Desk) -> None:
    if desk.name != "claude-mcp":
        pytest.skip("the others have none by hand")
    headers = {"Authorization": f"Bearer {desk.api.token}"}
    url = desk.api.mcp_url("S1")
    desk.servers = {"own": {"type": "http", "url": url, "headers": headers, "alwaysLoad": True}}
    desk.wait_for(desk.spawn("[[mcp:hi]]"), "completed")
    assert len(desk.api.mcp_calls()) == 1
    assert desk.api.asked("/decoy") == []


def test_an_api_error_is_a_failed_session(desk: Desk) -> None:
    session = desk.spawn("[[error:400]]")
    desk.wait_for(session, "failed")
    assert json.loads(desk.state.read_text())["failure_count"] == 1


def test_its_limit_leaves_no_process(desk: Desk) -> None:
    entry = {"timeout_minutes": 0.08}
    (desk.root / "repo" / "agent_runtime.json").write_text(json.dumps({"runtimes": {desk.name: entry}}))
    session = desk.spawn("[[sleep:300]]")
    desk.wait_for(session, "active")
    desk.wait_for(session, "failed")
    assert "timeout_minutes" in desk.log(session)
    wait_until(lambda: not desk.processes(), what="no process to be left")


def test_as_a_runtime_it_reaches_the_farms_server_alone(desk: Desk) -> None:
    result = _invoke(desk, "[[mcp:hi]]")
    assert result.failure is None
    calls = desk.api.mcp_calls()
    assert len(calls) == 1
    assert "runtime_session_id=S1" in calls[0].path
    assert calls[0].headers["authorization"] == f"Bearer {desk.api.token}"
    assert desk.api.asked("/decoy") == []
    assert "ROLE-MARK" in _heard(desk.api)


def _invoke(desk: Desk, prompt: str) -> RuntimeResult:
    """As `af run --runtime claude-mcp` does, where one line declares it."""
    (desk.worktree / "agent_runtime.json").write_text(json.dumps({"runtimes": {desk.name: {}}}))
    return asyncio.run(
        get_adapter(desk.name, desk.worktree).invoke(
            prompt,
            "ROLE-MARK",
            {"farm": McpServer("farm", desk.api.mcp_url("S1"), desk.api.token)},
            desk.env,
            cwd=desk.worktree,
            home=desk.root / "runtime-home",
        )
    )


def _heard(api: FakeApi) -> str:
    return "\n".join(_strings([request.body for request in api.model_requests()]))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings(list(value.values()))
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
