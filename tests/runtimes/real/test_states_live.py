"""Builders of real CLIs through `af`: what no event tells of them, and what is kept over resumes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.fake_api import FakeApi
from tests.runtimes.real.clis import Cli
from tests.runtimes.screens import label_of
from tests.waiting import wait_until

pytestmark = pytest.mark.runtimes


@dataclass
class Live:
    """One spawned builder; `told` is its state and where that is from."""

    af: Af
    cli: Cli
    id: str
    env: dict[str, str]

    @property
    def status(self) -> dict[str, str]:
        listed = json.loads(self.af("status", self.id, "--json", env=self.env).stdout)["builders"]
        return dict(listed[0]["status"])

    @property
    def told(self) -> tuple[str, str]:
        return self.status["state"], self.status["source"]

    def wait_for(self, state: str, *sources: str, seconds: float = 120) -> None:
        def reached() -> bool:
            now, source = self.told
            return now == state and (not sources or source in sources)

        try:
            wait_until(reached, what=f"{state} from {sources}", timeout=seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.status}\n{self.screen}") from None

    @property
    def screen(self) -> str:
        return self.af("capture", self.id, env=self.env).stdout

    def press_until_gone(self, key: str, label: str) -> None:
        """Again until it works: codex drops keys as it opens a dialog, some want Escape twice."""
        pause = 0.4 if self.cli.name == "copilot" else 1.5  # it wants two close together
        for _ in range(20):
            subprocess.run(["tmux", "send-keys", "-t", f"={self.session}:", key], check=True, timeout=120)
            with suppress(AssertionError):
                wait_until(lambda: self.label != label, what="the screen to change", timeout=pause)
                return
        raise AssertionError(f"{key} changes nothing:\n{self.screen}")

    def wait_for_label(self, label: str) -> None:
        wait_until(lambda: self.label == label, what=f"the screen to be {label}")

    @property
    def label(self) -> str:
        capture = ["tmux", "capture-pane", "-e", "-p", "-t", f"={self.session}:"]
        shown = subprocess.run(capture, capture_output=True, text=True, check=True, timeout=120).stdout
        return label_of(shown, self.cli.adapter.cli.screen)

    @cached_property
    def session(self) -> str:
        listed = json.loads(self.af("status", self.id, "--json", env=self.env).stdout)["builders"]
        return str(listed[0]["session"])

    def conversation(self) -> str | None:
        listed = json.loads(self.af("status", self.id, "--json", env=self.env).stdout)["builders"]
        return listed[0]["conversation_id"]  # type: ignore[no-any-return]

    def send(self, text: str) -> None:
        done = self.af("send", self.id, text, env=self.env)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def live(cli: Cli, af: Af, api: FakeApi, repo: Path) -> Iterator[Live]:
    model = f'[runtimes.{cli.name}]\nmodel = "{cli.model}"\n' if cli.model else ""
    (repo / "agent-farm.toml").write_text(f"[env]\npass = {json.dumps(list(cli.keys))}\n{model}")
    env = cli.environment(api)
    done = af("spawn", "hello", "--runtime", cli.name, "--permissions", "ask", "--yes", env=env)
    assert done.returncode == 0, done.stderr
    made = Live(af, cli, done.stdout.split()[0], env)
    made.wait_for("idle")
    yield made
    af("stop", made.id, env=env)


def test_an_answered_dialog_and_one_that_was_left_are_seen(live: Live) -> None:
    verb = "escalate" if live.cli.name == "codex" else "shell"
    live.send(f"[[{verb}:python3 -c 'import time; time.sleep(9)']]")
    live.wait_for("waiting")
    assert live.cli.name != "claude-code" or "time.sleep(9)" in live.status["reason"]
    live.wait_for_label("dialog")
    live.press_until_gone("Enter", "dialog")
    live.wait_for("working")
    live.wait_for("idle")

    live.send(f"[[{verb}:touch never.txt]]")
    live.wait_for("waiting")
    live.wait_for_label("dialog")
    live.press_until_gone("Escape", "dialog")
    live.wait_for("idle")


def test_an_interrupted_turn_is_seen(live: Live) -> None:
    live.send("[[sleep:120]]")
    live.wait_for("working")
    live.wait_for_label("working")
    live.press_until_gone("Escape", "working")
    live.wait_for("idle")


def test_resumes_without_a_message_keep_the_conversation(live: Live) -> None:
    first = live.conversation() or None
    for _ in range(2):
        live.af("stop", live.id, env=live.env)
        done = live.af("resume", live.id, "--json", env=live.env)
        assert json.loads(done.stdout)["continues"] is True, done.stderr
        live.wait_for("idle")
    again = live.conversation()
    assert again
    assert first in (None, again)
