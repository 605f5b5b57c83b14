"""The shipped commands on the real CLIs: they answer, and meet no MCP server of the user's."""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_farm.errors import AgentFarmError
from agent_farm.launch import Launch
from tests.ask.clis import CLIS, Cli, require_cli, stdio_decoy
from tests.ask.stage import Stage
from tests.ask.test_chat import LEADER
from tests.fake_api import FakeApi, fake_api
from tests.runtimes.ptys import OnPty, on_pty
from tests.waiting import wait_until

pytestmark = pytest.mark.runtimes


def _id(cli: Cli) -> str:
    return cli.binary


each_cli = pytest.mark.parametrize("cli", CLIS, ids=_id)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api() as running:
        yield running


@pytest.fixture
def user(stage: Stage, api: FakeApi, cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Somebody who uses this CLI, has MCP servers of their own, and three sources."""
    require_cli(cli, monkeypatch)
    for name, value in cli.configure(home, api, stdio_decoy(stage.root)).items():
        monkeypatch.setenv(name, value)
    stage.write({"defaultAgent": cli.agent})
    stage.sources.add("app", str(stage.directory("app", hostile_project(api))))
    stage.sources.add("note", str(stage.file("note.md", "marmalade\n")))
    return stage


def hostile_project(api: FakeApi) -> dict[str, str]:
    """A source whose own configuration wants to bring MCP servers along."""
    server = {"type": "http", "url": f"{api.url}/decoy/project", "httpUrl": f"{api.url}/decoy/project"}
    servers = json.dumps({"mcpServers": {"p": server}})
    remote = {"type": "remote", "url": f"{api.url}/decoy/project", "enabled": True}
    return {
        "core.py": "SECRET = 'pineapple'\n",
        ".mcp.json": servers,
        ".gemini/settings.json": servers,
        "opencode.json": json.dumps({"mcp": {"p": remote}}),
        ".codex/config.toml": f'[mcp_servers.p]\nurl = "{api.url}/decoy/project"\n',
    }


def decoys(stage: Stage, api: FakeApi) -> list[str]:
    started = ["stdio"] if (stage.root / "decoy-was-started").exists() else []
    return [request.path for request in api.asked("/decoy")] + started


def typing(terminal: OnPty, api: FakeApi) -> Callable[[], bool]:
    """Paste and Enter by turns: an Enter right after a paste is part of it, and a dialog may come first."""
    turns = itertools.cycle((lambda: terminal.paste("What is this? "), lambda: terminal.type(b"\r")))
    last = 0.0

    def sent() -> bool:
        nonlocal last
        if time.monotonic() - last > 0.8:
            last = time.monotonic()
            next(turns)()
        return any("What is this?" in request.text for request in api.model_requests())

    return sent


@each_cli
def test_reads_a_directory_and_meets_no_server(user: Stage, api: FakeApi, cli: Cli) -> None:
    question = f"What is it? {cli.read(user.root / 'user' / 'app' / 'core.py')}"
    answer = user.runner.ask(sources=["app", "note"], question=question)["answer"]
    assert "pineapple" in answer
    assert "TOOL-RESULT" in answer
    assert decoys(user, api) == []
    assert api.mcp_calls("initialize") == []
    assert user.left() == []
    prompt = api.model_requests()[-1].text
    assert "- ./app/" in prompt
    assert str(user.root / "user" / "app") in prompt
    assert any("core.py" in line for line in user.told), "no progress was shown"


@each_cli
def test_reads_a_file_source(user: Stage, api: FakeApi, cli: Cli) -> None:
    """By the path that the prompt names, which differs from run to run."""
    question = f"What is it? {cli.read(Path('lctx-files/note/note.md'))}"
    if cli.agent == "claude-code":
        question = 'What is it? [[call:Grep {"pattern":"marm","path":"lctx-files","output_mode":"content"}]]'
    assert "marmalade" in user.runner.ask(sources=["note"], question=question)["answer"]


@pytest.mark.parametrize("cli", [cli for cli in CLIS if cli.binary != "codex"], ids=_id)
def test_reads_nothing_outside_the_sources(user: Stage, api: FakeApi, cli: Cli) -> None:
    question = cli.read(user.file("private/key", "top secret\n"))
    answer = user.runner.ask(sources=["app"], question=question)["answer"]
    assert "TOOL-RESULT" in answer
    assert "top secret" not in answer


@pytest.mark.parametrize("cli", [cli for cli in CLIS if cli.binary in ("claude", "gemini")], ids=_id)
def test_follows_no_link_out_of_a_source(user: Stage, api: FakeApi, cli: Cli) -> None:
    link = user.root / "user" / "app" / "evil"
    link.symlink_to(user.file("private/key", "top secret\n"))
    answer = user.runner.ask(sources=["app"], question=cli.read(link))["answer"]
    assert "TOOL-RESULT" in answer
    assert "top secret" not in answer


@each_cli
def test_answers_with_a_question_longer_than_an_argument_may_be(user: Stage, api: FakeApi, cli: Cli) -> None:
    question = "why? " * 60_000 + "[[say:I read it all]]"
    assert user.runner.ask(sources=["app"], question=question)["answer"].strip() == "I read it all"


@each_cli
def test_decoys_would_be_met_without_the_lock(user: Stage, api: FakeApi, cli: Cli) -> None:
    user.write(
        {
            "defaultAgent": "bare",
            "agents": {"bare": {"ask": cli.bare, "stdin": "{prompt_file}", "pass": sorted(os.environ)}},
        }
    )
    user.runner.ask(sources=["app"], question="[[say:hello]]")
    assert decoys(user, api)


@each_cli
def test_chat_talks_to_the_model_and_to_no_server(user: Stage, api: FakeApi, cli: Cli) -> None:
    words = (sys.executable, "-c", LEADER, sys.executable, "-m", "agent_farm", "chat", "-s", "app")
    with on_pty(Launch(words, user.root, dict(os.environ, TERM="xterm-256color"))) as terminal:
        terminal.wait_for(cli.ready, timeout=120)
        wait_until(typing(terminal, api), timeout=120, what="the question at the model")
        assert decoys(user, api) == []
        terminal.process.terminate()
        assert terminal.end() == 143
    wait_until(lambda: user.left() == [], what="the directory to go")


@each_cli
def test_refused_request_is_an_error_in_the_clis_own_words(
    user: Stage, api: FakeApi, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_MAX_RETRIES", "0")
    with pytest.raises(AgentFarmError, match="fake error 400"):
        user.runner.ask(sources=["app"], question="[[error:400]]")
    assert user.left() == []
