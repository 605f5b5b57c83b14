"""What an agent gets of the user's environment: by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.ask.agent_environment import agent_environment
from tests.ask.stage import Stage

USER = {
    "PATH": "/bin",
    "HOME": "/home/u",
    "LANG": "C.UTF-8",
    "HTTPS_PROXY": "http://proxy",
    "XDG_DATA_HOME": "/data",
    "DATABASE_URL": "secret",
    "GITHUB_TOKEN": "secret",
    "SSH_AUTH_SOCK": "/agent",
    "CLAUDECODE": "1",
    "CLAUDE_CODE_SSE_PORT": "1",
    "AF_MCP_TOKEN": "secret",
    "ANTHROPIC_API_KEY": "a",
    "ANTHROPIC_BASE_URL": "b",
    "CLAUDE_CODE_USE_BEDROCK": "1",
    "AWS_PROFILE": "p",
    "OPENAI_API_KEY": "o",
    "GEMINI_API_KEY": "g",
    "CURSOR_API_KEY": "c",
}


def names(command: str, *passes: str) -> set[str]:
    return set(agent_environment(USER, command, passes)) - {"PATH", "HOME", "LANG", "AF_INSIDE_ASK"}


ALL = {"HTTPS_PROXY", "XDG_DATA_HOME"}
CLAUDE = {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_USE_BEDROCK", "AWS_PROFILE"}


@pytest.mark.parametrize(
    ("command", "own"),
    [
        ("claude", CLAUDE),
        ("/opt/bin/claude", CLAUDE),
        ("codex", {"OPENAI_API_KEY"}),
        ("gemini", {"GEMINI_API_KEY"}),
        ("cursor-agent", {"CURSOR_API_KEY"}),
        ("something-else", set()),
    ],
)
def test_each_cli_has_its_own_keys_and_nobody_elses(command: str, own: set[str]) -> None:
    assert names(command) == ALL | own


KEYS_OF_MANY = CLAUDE - {"CLAUDE_CODE_USE_BEDROCK"} | {"OPENAI_API_KEY", "GEMINI_API_KEY"}


def test_opencode_speaks_to_many_vendors() -> None:
    assert names("opencode") == ALL | KEYS_OF_MANY


def test_more_is_passed_by_name() -> None:
    assert names("x", "DATABASE_URL", "GITHUB_*", "UNSET") == ALL | {"DATABASE_URL", "GITHUB_TOKEN"}


def test_keys_that_codex_is_configured_with(home: Path) -> None:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text('[model_providers.mine]\nenv_key = "MINE"\n')
    env = agent_environment({"HOME": str(home), "MINE": "1", "OTHER": "2"}, "codex", ())
    assert "MINE" in env
    assert "OTHER" not in env


def test_keys_that_opencode_is_configured_with(home: Path) -> None:
    (home / ".config" / "opencode").mkdir(parents=True)
    (home / ".config" / "opencode" / "opencode.jsonc").write_text('{"x": "{env:MINE}"} // {env:TOO}')
    env = agent_environment({"HOME": str(home), "MINE": "1", "TOO": "2", "OTHER": "3"}, "opencode", ())
    assert {"MINE", "TOO"} <= set(env)
    assert "OTHER" not in env


def test_agent_runs_with_that_environment(stage: Stage, app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_MINE", "x")
    monkeypatch.setenv("WANTED", "y")
    stage.use(**{"pass": ["WANTED"]}, env={"ADDED": "at {directory}"})
    stage.runner.ask(sources=["app"], question="Why?")
    env, here = stage.seen()["env"], stage.seen()["cwd"]
    assert "SECRET_OF_MINE" not in env
    assert env["WANTED"] == "y"
    assert env["ADDED"] == f"at {here}"
    stage.runner.chat(sources=["app"])
    assert "SECRET_OF_MINE" not in stage.seen()["env"]
