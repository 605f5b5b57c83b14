from __future__ import annotations

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


def test_the_reason_of_gemini_is_told_and_not_its_advice() -> None:
    said = (
        "When using Gemini API, you must specify the GEMINI_API_KEY environment variable.\n"
        "Update your environment and try again (no reload needed if using .env)!\n"
    )
    failure = GeminiLines(1).explain(said, 41)
    assert (failure.kind, "GEMINI_API_KEY" in failure.message) == ("not-logged-in", True)
