from __future__ import annotations

import pytest

from agent_farm.runtimes.environment import MissingVariable, allowed_environment, without_foreign_keys

SOURCE = {
    "PATH": "/bin",
    "LC_TIME": "C",
    "AF_ROOT": "/r",
    "AF_MCP_TOKEN": "of the run outside",
    "SECRET": "s",
    "ANTHROPIC_API_KEY": "a",
    "OPENAI_API_KEY": "o",
    "DECLARED": "d",
    "SSH_AUTH_SOCK": "/s",
    "HTTPS_PROXY": "p",
}


def test_only_what_is_named_passes() -> None:
    env = allowed_environment(SOURCE, key_names=["ANTHROPIC_API_KEY"], declared=["DECLARED", "NOT_SET"])
    assert env == {
        "PATH": "/bin",
        "LC_TIME": "C",
        "AF_ROOT": "/r",
        "ANTHROPIC_API_KEY": "a",
        "DECLARED": "d",
    }


def test_required_variables_are_named_all_at_once() -> None:
    with pytest.raises(MissingVariable, match="ONE, TWO") as caught:
        allowed_environment(SOURCE, required=["ONE", "DECLARED", "TWO"])
    assert caught.value.hint
    assert allowed_environment(SOURCE, required=["DECLARED"])["DECLARED"] == "d"


def test_another_vendors_keys_are_dropped() -> None:
    env = without_foreign_keys(SOURCE, ["OPENAI_API_KEY"])
    assert "ANTHROPIC_API_KEY" not in env
    assert env["OPENAI_API_KEY"] == "o"
    assert env["DECLARED"] == "d"
