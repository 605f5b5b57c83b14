"""The lock: with servers and hooks of the user and of the project configured, only the farm's is used."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from agent_farm.runtimes.mcp_config import McpServer
from tests.fake_api import FakeApi
from tests.runtimes.panes import pane_of, pane_order
from tests.runtimes.real.clis import Cli, project_with_decoys
from tests.waiting import wait_until

pytestmark = pytest.mark.runtimes

# The same CLI without our flags and homes: what proves that the decoys would be found.
UNLOCKED = {
    "claude-code": ["claude", "-p", "--setting-sources", "user,project", "--", "hello"],
    "codex": ["codex", "exec", "--skip-git-repo-check", "hello"],
    "gemini": ["gemini", "--approval-mode", "yolo", "--prompt=hello"],
    "copilot": ["copilot", "--no-auto-update", "--allow-all-tools", "--trust-folder", "--prompt=hello"],
    "opencode": ["opencode", "run", "--model", "openai/gpt-5.2", "hello"],
}
EXTRA = {
    "claude-code": {"CLAUDE_CODE_SANDBOXED": "1"},
    "gemini": {"GEMINI_CLI_TRUST_WORKSPACE": "true"},
}


def hooks_run(root: Path) -> list[str]:
    return sorted(path.name for path in root.glob("hook-of-*"))


@pytest.mark.parametrize("account", ["key", "login"])
def test_headless_only_the_farms_server_is_contacted(
    cli: Cli, api: FakeApi, worktree: Path, tmp_path: Path, home: Path, account: str
) -> None:
    env = cli.account(api, home, account)
    server = McpServer("farm", api.mcp_url("S1"), api.token)
    result = asyncio.run(
        cli.adapter.invoke(
            "[[mcp:hi]]",
            "ROLE-MARK",
            {"farm": server},
            {"HOME": os.environ["HOME"], "TMPDIR": os.environ["TMPDIR"], **env},
            model=cli.model,
            runtime_args=cli.arguments(api, account),
            cwd=worktree,
            home=tmp_path / "runtime-home",
        )
    )
    assert result.failure is None
    assert len(api.mcp_calls()) == 1
    assert api.asked("/decoy") == []
    assert hooks_run(tmp_path) == []
    assert_read(cli, api)


def wait_for_tools(api: FakeApi) -> None:
    """claude does not hold its first turn up for a server."""
    wait_until(lambda: api.mcp_calls("tools/list"), what="the farm's tools to be asked for")


@pytest.mark.parametrize("account", ["key", "login"])
def test_in_a_pane_only_the_farms_server_is_contacted(
    cli: Cli, api: FakeApi, worktree: Path, tmp_path: Path, home: Path, account: str
) -> None:
    adapter, env = cli.adapter, cli.account(api, home, account)
    order = pane_order(
        adapter,
        tmp_path,
        worktree,
        prompt="hello",
        role="ROLE-MARK",
        model=cli.model,
        env=env,
        extra_args=cli.arguments(api, account),
        conversation_id=adapter.new_conversation_id(),
        server=McpServer("farm", api.mcp_url("S1"), api.token),
    )
    with pane_of(adapter, order) as pane:
        pane.wait_for_state("idle")
        wait_for_tools(api)
        before = len(pane.events)
        pane.send("[[mcp:hi]]")
        pane.wait_for_state("idle", after=before)
    assert len(api.mcp_calls()) == 1
    assert api.asked("/decoy") == []
    # copilot cannot be told to leave the repository's hooks out; docs/runtimes.md says so
    assert hooks_run(tmp_path) == (["hook-of-claude", "hook-of-copilot"] if cli.name == "copilot" else [])
    assert_read(cli, api)


def test_a_server_of_the_project_under_the_farms_own_name_does_not_win(
    cli: Cli, api: FakeApi, worktree: Path, tmp_path: Path
) -> None:
    for file in project_with_decoys(worktree, api):
        if "decoy" in (text := (worktree / file).read_text()):
            (worktree / file).write_text(
                text.replace('"decoy"', '"farm"').replace("[mcp_servers.decoy]", "[mcp_servers.farm]")
            )
    adapter = cli.adapter
    order = pane_order(
        adapter,
        tmp_path,
        worktree,
        prompt="hello",
        model=cli.model,
        env=cli.environment(api),
        conversation_id=adapter.new_conversation_id(),
        server=McpServer("farm", api.mcp_url("S1"), api.token),
    )
    with pane_of(adapter, order) as pane:
        pane.wait_for_state("idle")
        wait_for_tools(api)
        before = len(pane.events)
        pane.send("[[mcp:hi]]")
        pane.wait_for_state("idle", after=before)
    assert len(api.mcp_calls()) == 1
    assert api.asked("/decoy") == []


def test_without_a_server_the_configuration_is_empty(
    cli: Cli, api: FakeApi, worktree: Path, tmp_path: Path
) -> None:
    adapter = cli.adapter
    order = pane_order(
        adapter, tmp_path, worktree, prompt="[[mcp:hi]]", model=cli.model, env=cli.environment(api)
    )
    with pane_of(adapter, order) as pane:
        pane.wait_for_state("idle")
    assert api.asked("/mcp") == []


def test_the_decoys_would_be_found_without_the_lock(cli: Cli, api: FakeApi, worktree: Path) -> None:
    """What makes the tests above able to fail."""
    home = Path(os.environ["HOME"])
    env = {**os.environ, **cli.environment(api), **EXTRA.get(cli.name, {})}
    if cli.name == "codex":
        key = f'model_provider="f"\n[model_providers.f]\nname="f"\nbase_url="{api.url}/v1"\n'
        key += 'env_key="CODEX_API_KEY"\n'
        config = home / ".codex/config.toml"
        config.write_text(key + config.read_text())
    if cli.name == "gemini":
        settings = home / ".gemini/settings.json"
        auth = '"security":{"auth":{"selectedType":"gemini-api-key"}},'
        settings.write_text(settings.read_text().replace("{", "{" + auth, 1))
    process = subprocess.Popen(
        UNLOCKED[cli.name],
        cwd=worktree,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until(lambda: api.asked("/decoy/user"), what="the user's decoy")
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def assert_read(cli: Cli, api: FakeApi) -> None:
    """The role and the worktree's own instructions reach the model, the user's own of another CLI do not."""
    heard = api.model_text()
    assert "ROLE-MARK" in heard
    assert ("PROJECT-CLAUDE-MARK" if cli.reads == "CLAUDE.md" else "PROJECT-AGENTS-MARK") in heard
    assert "USER-CLAUDE-MARK" not in heard
