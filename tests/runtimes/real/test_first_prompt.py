from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.runtimes.mcp_config import McpServer
from tests.fake_api import FakeApi
from tests.runtimes.panes import pane_of, pane_order
from tests.runtimes.real.clis import Cli

pytestmark = pytest.mark.runtimes


@pytest.mark.parametrize("seconds", [0, 3])
def test_the_first_prompt_of_a_pane_has_the_farms_tools(
    cli: Cli, api: FakeApi, repo: Path, tmp_path: Path, seconds: float
) -> None:
    """However long the server takes to tell them."""
    api.tools_take = seconds
    adapter = cli.adapter
    order = pane_order(
        adapter,
        tmp_path,
        repo,
        prompt="[[mcp:first]]",
        model=cli.model,
        env=cli.environment(api),
        conversation_id=adapter.new_conversation_id(),
        server=McpServer("farm", api.mcp_url("S1"), api.token),
    )
    with pane_of(adapter, order) as pane:
        pane.wait_for_state("idle")
    assert len(api.mcp_calls()) == 1
