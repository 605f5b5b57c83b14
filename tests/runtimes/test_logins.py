from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.gemini_events import GeminiEvents
from tests.runtimes.orders import make_start


@pytest.mark.parametrize("cloud", ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"])
def test_a_cloud_is_a_login_of_claude(cloud: str) -> None:
    adapter = get_adapter("claude-code")
    assert "CLAUDE_CODE_USE_BEDROCK" in str(adapter.cli.login({"HOME": "/nonexistent"}, None))
    assert adapter.cli.login({"HOME": "/nonexistent", cloud: "0"}, None)
    assert adapter.cli.login({"HOME": "/nonexistent", cloud: "1"}, None) is None
    assert cloud in adapter.cli.variables


def test_opencode_without_a_login_goes_to_nobody_unasked(tmp_path: Path) -> None:
    """Its own default is a free model that its vendor hosts."""
    adapter = get_adapter("opencode")
    home = {"HOME": str(tmp_path)}
    assert "no login, and no model" in str(adapter.cli.login(home, None))
    assert "no model" in str(adapter.cli.login({**home, "OPENAI_API_KEY": "sk"}, None))
    assert "set OPENAI_API_KEY" in str(adapter.cli.login(home, "openai/gpt-5.2"))
    assert adapter.cli.login({**home, "OPENAI_API_KEY": "sk"}, "openai/gpt-5.2") is None
    assert adapter.cli.login(home, "ollama/llama") is None
    (tmp_path / ".local/share/opencode").mkdir(parents=True)
    (tmp_path / ".local/share/opencode/auth.json").write_text('{"openai": {"type": "api"}}')
    assert adapter.cli.login(home, None) is None
    assert adapter.cli.login(home, "openai/gpt-5.2") is None


def test_the_reason_of_gemini_is_told_and_not_its_advice(tmp_path: Path) -> None:
    said = (
        "When using Gemini API, you must specify the GEMINI_API_KEY environment variable.\n"
        "Update your environment and try again (no reload needed if using .env)!\n"
    )
    failure = GeminiEvents(make_start(tmp_path)).explain(said, 41)
    assert (failure.kind, "GEMINI_API_KEY" in failure.message) == ("not-logged-in", True)


def test_copilot_with_a_provider_of_its_own_does_not_see_the_tokens_of_github() -> None:
    cli = get_adapter("copilot").cli
    assert "GH_TOKEN" in cli.own_variables({"GH_TOKEN": "t"}, None)
    provider = {"GH_TOKEN": "t", "COPILOT_PROVIDER_BASE_URL": "http://x"}
    assert {"GH_TOKEN", "GITHUB_TOKEN"}.isdisjoint(cli.own_variables(provider, None))
    assert "COPILOT_PROVIDER_BASE_URL" in cli.own_variables(provider, None)
