"""The agents of config.json, and the shipped ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_farm.ask import ConfigManager
from agent_farm.ask.agents import shipped_agents
from agent_farm.ask.config_file import config_directory
from agent_farm.errors import AgentFarmError, DamagedFile, NotFound
from tests.ask.stage import Stage

NAMES = {"claude-code", "codex", "gemini", "opencode", "cursor-agent"}


def test_missing_file_means_the_defaults(home: Path) -> None:
    config = ConfigManager()
    assert config.path == home / ".config" / "lctx" / "config.json"
    assert config.default_agent == "claude-code"
    assert set(shipped_agents()) == NAMES
    assert dict(config.sources) == {}
    assert not config.path.parent.exists(), "reading writes nothing"


def test_xdg_config_home_is_respected(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    assert config_directory() == tmp_path / "xdg" / "lctx"
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert config_directory() == home / ".config" / "lctx"


def test_every_shipped_agent_has_both_commands() -> None:
    for agent in shipped_agents().values():
        assert agent.command("ask")
        assert agent.command("chat")


def test_documented_shape_is_read(stage: Stage) -> None:
    stage.config.path.write_text(
        json.dumps(
            {
                "defaultAgent": "claude-code",
                "agents": {
                    "claude-code": {
                        "ask": "claude -p {prompt_file} --mcp-config {mcp_config}",
                        "chat": "claude",
                    }
                },
                "sources": {},
            }
        )
    )
    agent = stage.config.agent()
    assert agent.ask == ("claude", "-p", "{prompt_file}", "--mcp-config", "{mcp_config}")
    assert agent.chat == ("claude",)
    assert agent.stdin is None, "an entry replaces the shipped one whole"


def test_unknown_agent_names_the_known_ones(stage: Stage, app: Path) -> None:
    stage.write({"defaultAgent": "claud-code"})
    with pytest.raises(NotFound, match="No agent claud-code") as caught:
        stage.runner.ask(sources=["app"], question="Why?")
    assert "Did you mean claude-code?" in str(caught.value.why)
    assert stage.left() == []


def test_agent_without_a_command_says_which(stage: Stage, app: Path) -> None:
    stage.write({"defaultAgent": "a", "agents": {"a": {"ask": "x"}}})
    with pytest.raises(AgentFarmError, match="Agent a has no chat command"):
        stage.runner.chat(sources=["app"])


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("claude", "Expected `object`, got `str` - at `agents.a`"),
        ({"ask": 'claude "'}, "No closing quotation"),
        ({"ask": ""}, "is empty"),
        ({"ask": 1}, "`agents.a.ask`"),
        ({"ask": "x", "shell": True}, "unknown field `shell` - at `agents.a`"),
        ({"ask": "x", "env": {"A=B": "c"}}, "`agents.a.env`"),
        ({"ask": "x", "env": {"A": 1}}, "`agents.a.env[...]`"),
        ({"ask": "x", "pass": "HOME"}, "`agents.a.pass`"),
        ({"ask": "x", "output": "xml"}, "output must be one of"),
    ],
)
def test_damaged_agents_are_named(stage: Stage, app: Path, entry: object, why: str) -> None:
    stage.write({"defaultAgent": "a", "agents": {"a": entry}})
    with pytest.raises(DamagedFile) as caught:
        stage.runner.ask(sources=["app"], question="Why?")
    assert why in str(caught.value.why)
    assert stage.left() == []
