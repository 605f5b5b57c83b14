"""opencode takes messages beside its screen: each said once, in order, a person's draft untouched."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from agent_farm.farm.message_door import pass_in
from tests.conftest import Af
from tests.fake_api import FakeApi
from tests.runtimes.real.clis import CLIS, require_clis
from tests.runtimes.real.live import spawned
from tests.waiting import wait_until

pytestmark = pytest.mark.runtimes
MESSAGES = 1000


def test_a_thousand_messages_while_it_works_and_a_person_types(
    repo: Path, af: Af, api: FakeApi, tmp_path: Path
) -> None:
    require_clis()
    cli = CLIS["opencode"]
    with spawned(af, cli, repo, cli.environment(api), "[[say:ready]]") as builder:
        builder.wait_for("idle")
        door = repo / ".agent-farm" / "runs" / builder.id / "door"
        wait_until((door / "open").exists, what="the door to be open")
        keys = ["tmux", "send-keys", "-t", f"={builder.session}:", "-l", "half a draft"]
        subprocess.run(keys, check=True, timeout=120)
        builder.send("[[sleep:20]] message-first")
        run = json.loads((repo / ".agent-farm/registry.json").read_text())["builders"][builder.id]["run"]
        outcomes = [pass_in(door, run, f"message-{number:04d}-end") for number in range(MESSAGES)]
        assert {one and one.outcome for one in outcomes} == {"submitted"}
        wait_until(
            lambda: f"message-{MESSAGES - 1:04d}-end" in api.model_requests()[-1].text,
            what="the last",
            timeout=600,
        )
        builder.wait_for("idle", seconds=600)
        heard = re.findall(r"message-(\d{4})-end", api.model_requests()[-1].text)
        assert heard == [f"{number:04d}" for number in range(MESSAGES)]
        assert "half a draft" in builder.screen
        assert list(door.glob("0*")) == []


def test_without_the_plugin_a_message_is_typed(repo: Path, af: Af, api: FakeApi, tmp_path: Path) -> None:
    require_clis()
    cli = CLIS["opencode"]
    with spawned(af, cli, repo, cli.environment(api), "[[say:ready]]") as builder:
        builder.wait_for("idle")
        (repo / ".agent-farm" / "runs" / builder.id / "door" / "open").unlink()
        builder.send("typed-message")
        wait_until(lambda: "typed-message" in api.model_requests()[-1].text, what="the message")
