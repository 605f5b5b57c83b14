"""codev's protocol.json, and the programs that its roles and prompts order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_farm.builders.absent_tools import absent_tools
from agent_farm.builders.protocol_file import parse_protocol_file
from agent_farm.errors import UsageError

# In the form of codev's own protocols.
PROTOCOL = {
    "$schema": "../protocol-schema.json",
    "name": "air",
    "alias": "autonomous",
    "input": {"type": "github-issue", "required": False, "default_for": ["--issue"]},
    "phases": [
        {
            "id": "implement",
            "checks": {
                "build": {"command": "npm run build", "on_fail": "retry", "max_retries": 2},
                "spec_exists": "test -f codev/specs/${PROJECT_TITLE}.md",
                "regression_test": {"description": "A test MUST be added", "required": True},
            },
        },
        {
            "id": "pr",
            "checks": {
                "pr_exists": {"command": 'gh pr list --head "$(git branch --show-current)"'},
                "e2e": {"command": "npm run e2e", "optional": True},
            },
            "gate": "pr",
        },
    ],
    "defaults": {"mode": "strict", "checks": {"test": "npm test"}},
}


def test_phases_and_the_checks_that_any_work_can_have() -> None:
    file = parse_protocol_file(json.dumps(PROTOCOL), "protocol.json")
    assert (file.alias, file.phase_names) == ("autonomous", ("implement", "pr"))
    assert dict(file.checks()) == {"test": "npm test", "build": "npm run build"}


@pytest.mark.parametrize(
    "text",
    [
        "{", "[]", '{"phases": {}}', '{"phases": [{"id": "a b"}]}', '{"phases": [{"id": "\\u001b[2J"}]}',
        '{"input": {"type": 3}}', "[" * 100_000, json.dumps({"phases": [{"id": "p"}] * 31}),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"codev/protocols/x/protocol\.json cannot be read"):
        parse_protocol_file(text, "codev/protocols/x/protocol.json")


def test_programs_that_are_ordered_and_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    text = "Porch drives the loop. Run `porch next`, then\n  afx send architect done\nHand-run consult not."
    assert absent_tools(text) == ["afx", "porch"]
    (tmp_path / "porch").write_text("#!/bin/sh\n")
    (tmp_path / "porch").chmod(0o755)
    assert absent_tools(text) == ["afx"]
