"""A tool of the farm may take longer than the minute after which most CLIs give up by themselves."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from agent_farm.runtimes.mcp_config import McpServer
from agent_farm.runtimes.result import RuntimeResult
from tests.fake_api import FakeApi
from tests.runtimes.real.clis import CLIS, Cli, require_clis

pytestmark = pytest.mark.runtimes
SECONDS = 65


def test_every_cli_waits_for_a_slow_tool(api: FakeApi, repo: Path) -> None:
    """All at once: they do nothing but wait."""
    require_clis()

    async def all_of_them() -> list[RuntimeResult]:
        return await asyncio.gather(*(ask(cli, api, repo) for cli in CLIS.values()))

    results = dict(zip(CLIS, asyncio.run(all_of_them()), strict=True))
    told = {name: [call.result for call in result.tool_calls] for name, result in results.items()}
    assert told == {name: [f"echo[runtime_session_id=S1] wait {SECONDS} s"] for name in CLIS}, results
    assert all(result.seconds > SECONDS for result in results.values())


async def ask(cli: Cli, api: FakeApi, repo: Path) -> RuntimeResult:
    server = McpServer("farm", api.mcp_url("S1"), api.token)
    env = {"HOME": os.environ["HOME"], "TMPDIR": os.environ["TMPDIR"], **cli.environment(api)}
    prompt = f"[[mcp:wait {SECONDS} s]]"
    return await cli.adapter.invoke(
        prompt, "", {"farm": server}, env, cwd=repo, model=cli.model, timeout=SECONDS + 60
    )
