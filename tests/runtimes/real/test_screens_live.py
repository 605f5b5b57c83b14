"""The screen rules against the real CLIs; AF_RECORD_SCREENS=1 keeps the screens for test_screens.py."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agent_farm.runtimes.mcp_config import McpServer
from tests.fake_api import FakeApi
from tests.runtimes.panes import Pane, pane_of, pane_order
from tests.runtimes.real.clis import Cli
from tests.runtimes.screens import SCREENS
from tests.waiting import wait_until

pytestmark = pytest.mark.runtimes

RECORD = bool(os.environ.get("AF_RECORD_SCREENS"))  # read before a test's own environment hides it
ASKS = {"codex": "[[escalate:touch out.txt]]"}
PROMPTS = {
    "ready": None,
    "draft": None,
    "dialog": "[[shell:touch out.txt]]",
    "working": "[[sleep:45]]",
    "answered": "hello",
    "failed": "[[error:400]]",
}


@pytest.mark.parametrize("label", sorted(PROMPTS))
def test_a_screen_is_read_for_what_it_is(
    cli: Cli, api: FakeApi, repo: Path, tmp_path: Path, label: str
) -> None:
    adapter = cli.adapter
    if label == "failed" and not adapter.cli.screen.failed:
        pytest.skip("an event tells its errors")
    prompt = ASKS.get(cli.name, PROMPTS[label]) if label == "dialog" else PROMPTS[label]
    order = pane_order(
        adapter,
        tmp_path,
        repo,
        prompt=prompt,
        model=cli.model,
        env=cli.environment(api),
        permissions="ask",
        conversation_id=adapter.new_conversation_id(),
        server=McpServer("farm", api.mcp_url("S1"), api.token),
    )
    with pane_of(adapter, order) as pane:
        bring_to(pane, label)

        expected = {"answered": "ready"}.get(label, label)
        try:
            wait_until(lambda: pane.label == expected, what=f"the screen to be {label}")
        except AssertionError as error:
            raise AssertionError(f"{error}\nread as {pane.label}:\n{pane.screen}") from None
        if RECORD:
            captured = pane.tmux.capture(pane.pane_id, escapes=True).replace(str(tmp_path), "/tmp/farm")
            SCREENS.mkdir(exist_ok=True)
            (SCREENS / f"{cli.name}.{label}.txt").write_text(captured)


def bring_to(pane: Pane, label: str) -> None:
    if label == "dialog":
        pane.wait_for_state("waiting")
    elif label == "working":
        wait_until(
            lambda: any(e["event"] == pane.adapter.cli.hooks.submitted for e in pane.events), what="the turn"
        )
    elif label == "answered":
        pane.wait_for_state("idle")
    elif label == "draft":
        wait_until(lambda: pane.label == "ready", what="an input line")
        words = ["tmux", "send-keys", "-t", pane.pane_id, "-l", "half a message"]
        subprocess.run(words, check=True, timeout=120)
