from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.gemini_headless import GeminiLines


@pytest.mark.parametrize("cloud", ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"])
def test_a_cloud_is_a_login_of_claude(cloud: str) -> None:
    adapter = get_adapter("claude-code")
    assert "CLAUDE_CODE_USE_BEDROCK" in str(adapter.login_problem({"HOME": "/nonexistent"}))
    assert adapter.login_problem({"HOME": "/nonexistent", cloud: "0"})
    assert adapter.login_problem({"HOME": "/nonexistent", cloud: "1"}) is None
    assert cloud in adapter.key_names


def test_opencode_without_a_login_goes_to_nobody_unasked(tmp_path: Path) -> None:
    """Its own default is a free model that its vendor hosts."""
    adapter = get_adapter("opencode")
    home = {"HOME": str(tmp_path)}
    assert "no login, and no model" in str(adapter.login_problem(home))
    assert "no model" in str(adapter.login_problem({**home, "OPENAI_API_KEY": "sk"}))
    assert "set OPENAI_API_KEY" in str(adapter.login_problem(home, "openai/gpt-5.2"))
    assert adapter.login_problem({**home, "OPENAI_API_KEY": "sk"}, "openai/gpt-5.2") is None
    assert adapter.login_problem(home, "ollama/llama") is None
    (tmp_path / ".local/share/opencode").mkdir(parents=True)
    (tmp_path / ".local/share/opencode/auth.json").write_text('{"openai": {"type": "api"}}')
    assert adapter.login_problem(home) is None
    assert adapter.login_problem(home, "openai/gpt-5.2") is None


def test_the_reason_of_gemini_is_told_and_not_its_advice() -> None:
    said = (
        "When using Gemini API, you must specify the GEMINI_API_KEY environment variable.\n"
        "Update your environment and try again (no reload needed if using .env)!\n"
    )
    failure = GeminiLines(1).explain(said, 41)
    assert (failure.kind, "GEMINI_API_KEY" in failure.message) == ("not-logged-in", True)
