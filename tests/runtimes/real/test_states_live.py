"""Builders of real CLIs through `af`: what no event tells of them, and what is kept over resumes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.fake_api import FakeApi
from tests.runtimes.real.clis import CLIS, Cli, require_clis
from tests.runtimes.real.live import Live, spawned
from tests.waiting import wait_until

pytestmark = pytest.mark.runtimes


@pytest.fixture
def live(cli: Cli, af: Af, api: FakeApi, repo: Path) -> Iterator[Live]:
    with spawned(af, cli, repo, cli.environment(api), "hello") as made:
        made.wait_for("idle")
        yield made


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


def test_gemini_ended_as_it_resumes_keeps_the_conversation(
    af: Af, api: FakeApi, repo: Path, home: Path
) -> None:
    """Its new file has the name that the conversation's had, if the minute is the same."""
    require_clis()

    def files() -> list[str]:
        return [file.read_text() for file in (repo / ".agent-farm").rglob("chats/session-*.jsonl")]

    with spawned(af, CLIS["gemini"], repo, CLIS["gemini"].environment(api), "hello") as live:
        live.wait_for("idle")
        live.af("stop", live.id, env=live.env)
        (said,) = files()
        live.af("resume", live.id, env=live.env)
        wait_until(lambda: "".join(files()).count('"startTime"') == 2, what="its new file")
        subprocess.run(["tmux", "kill-session", "-t", f"={live.session}"], check=True, timeout=120)
        wait_until(lambda: live.af("resume", live.id, env=live.env).returncode == 0, what="its end")
        live.wait_for("idle", seconds=30)
        assert any(text.startswith(said) for text in files())


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_a_usage_limit_is_told_with_its_end(name: str, af: Af, api: FakeApi, repo: Path, home: Path) -> None:
    """claude knows limits of a login alone; gemini with a key waits for the end of one without a word."""
    require_clis()
    cli = CLIS[name]
    env = cli.account(api, home, "login" if name == "claude-code" else "key")
    (home / ".claude.json").write_text('{"hasCompletedOnboarding": true}')
    with spawned(af, cli, repo, env, "[[limit:7200]]") as made:
        made.wait_for("limited", "screen" if name != "claude-code" else "hook")
        assert made.status["reason"].startswith("until ")
