"""opencode takes messages beside its screen: each said once, each sender's in order, a draft untouched."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_farm.farm.message_door import pass_in
from tests.conftest import Af
from tests.fake_api import FakeApi
from tests.runtimes.real.clis import CLIS, require_clis
from tests.runtimes.real.live import spawned
from tests.waiting import wait_until

pytestmark = pytest.mark.runtimes
SENDERS, EACH = 8, 125


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
        run = re.findall(r'"run": "(\w+)"', (repo / ".agent-farm" / "registry.json").read_text())[0]

        def send(sender: int) -> list[str | None]:
            said = [pass_in(door, run, f"message-{sender}-{number:03d}-end") for number in range(EACH)]
            return [one and one.outcome for one in said]

        with ThreadPoolExecutor(SENDERS) as senders:
            outcomes = [one for each in senders.map(send, range(SENDERS)) for one in each]
        assert outcomes == ["submitted"] * (SENDERS * EACH)

        def heard() -> list[tuple[str, str]]:
            return re.findall(r"message-(\d)-(\d{3})-end", api.model_requests()[-1].text)

        wait_until(lambda: len(heard()) >= len(outcomes), what="all of them", timeout=600)
        builder.wait_for("idle", seconds=600)
        for sender in range(SENDERS):
            its = [number for one, number in heard() if one == str(sender)]
            assert its == [f"{number:03d}" for number in range(EACH)]
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
