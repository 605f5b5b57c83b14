from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.runtimes.mcp_config import McpServer
from tests.fake_api import FakeApi
from tests.runtimes.panes import pane_of, pane_order
from tests.runtimes.real.clis import Cli

pytestmark = [pytest.mark.runtimes, pytest.mark.timeout(240)]


def test_explore(cli: Cli, api: FakeApi, worktree: Path, tmp_path: Path) -> None:
    import time

    adapter = cli.adapter
    order = pane_order(
        adapter,
        tmp_path,
        worktree,
        prompt="[[shell:touch out.txt]]",
        role_text="ROLE-MARK",
        model=cli.model,
        env=cli.environment(api),
        conversation_id=adapter.new_conversation_id(),
        permissions="ask",
        mcp_server=McpServer("farm", api.mcp_url("S1"), api.token),
    )
    with pane_of(adapter, order) as pane:
        t = time.time()
        for i in range(120):
            time.sleep(0.25)
            if "waiting" in pane.states or "idle" in pane.states:
                break
        print("T", time.time() - t, pane.states)
        time.sleep(1)
        print(pane.screen)
        print([(e["event"], e["state"], e.get("reason")) for e in pane.events])
        import subprocess

        subprocess.run(["tmux", "send-keys", "-t", pane.pane_id, "Enter"])
        time.sleep(3)
        print(pane.screen)
        print([(e["event"], e["state"], e.get("reason")) for e in pane.events])
        print("SEND", pane.send("[[mcp:multi\nline]] 🐝 $(x)"))
        time.sleep(4)
        print(pane.screen)
        print([(e["event"], e["state"], e.get("reason")) for e in pane.events])
        print(
            [(r.method, r.path) for r in api.requests if "decoy" in r.path], sorted(tmp_path.glob("hook-of*"))
        )
    assert 0
