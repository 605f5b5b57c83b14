"""A person's own Claude in a builder: what `unlock` lets in, and what stays out all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_farm.runtimes.mcp_config import McpServer
from tests.fake_api import FakeApi
from tests.runtimes.panes import pane_of, pane_order
from tests.runtimes.real.clis import CLIS, require_clis
from tests.waiting import wait_until

pytestmark = pytest.mark.runtimes


@pytest.mark.parametrize("unlocked", [(), ("settings",), ("mcp",), ("settings", "mcp")])
def test_what_is_unlocked_is_used_and_nothing_else(
    unlocked: tuple[str, ...], worktree: Path, home: Path, api: FakeApi, tmp_path: Path
) -> None:
    require_clis()
    cli = CLIS["claude-code"]
    env = cli.account(api, home, "login")
    settings = home / ".claude" / "settings.json"
    allowed = {"permissions": {"allow": ["Bash(sh allowed.sh:*)"]}}
    settings.write_text(json.dumps({**json.loads(settings.read_text()), **allowed}))
    skill = home / ".claude" / "skills" / "own-skill" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: own-skill\ndescription: OWN-SKILL-MARK\n---\nDo it.\n")
    (worktree / "allowed.sh").write_text("touch ran.txt\n")
    order = pane_order(
        cli.adapter,
        tmp_path,
        worktree,
        prompt="[[shell:sh allowed.sh]]",
        env=env,
        conversation_id=cli.adapter.new_conversation_id(),
        server=McpServer("farm", api.mcp_url("S1"), api.token),
        unlocked=unlocked,
    )
    own = bool(unlocked)  # the servers are only found with the settings
    with pane_of(cli.adapter, order) as pane:
        pane.wait_for_state("idle" if own else "waiting")
        wait_until(lambda: api.mcp_calls("tools/list"), what="the farm's tools to be asked for")
        if "mcp" in unlocked:
            wait_until(lambda: api.asked("/decoy/user/"), what="the user's own server to be asked")
    assert (worktree / "ran.txt").exists() == own
    assert (tmp_path / "hook-of-user-claude").exists() == own
    assert bool(api.asked("/decoy/user/")) == ("mcp" in unlocked)
    text = api.model_text()
    assert ("OWN-SKILL-MARK" in text, "USER-CLAUDE-MARK" in text) == (own, own)
    # of the project, never
    assert api.asked("/decoy/project") == []
    assert not (tmp_path / "hook-of-claude").exists()
    assert "PROJECT-CLAUDE-MARK" in text
