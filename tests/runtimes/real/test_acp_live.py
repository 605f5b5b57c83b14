"""The entries of docs/runtimes.md for gemini, copilot and opencode over ACP, as they stand there."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_farm.runtimes import get_adapter
from tests.fake_api import FakeApi
from tests.gitrepo import write_files
from tests.runtimes.real.clis import CLIS, project_with_decoys, require_clis
from tests.runtimes.subjects import Subject, make_subject

DOCS = Path(__file__).parents[3] / "docs" / "runtimes.md"

pytestmark = pytest.mark.runtimes


def entries() -> Mapping[str, object]:
    blocks = re.findall(r"```json\n(.*?)```", DOCS.read_text().partition("## ACP agents")[2], re.DOTALL)
    found: Mapping[str, object] = json.loads(blocks[1])["runtimes"]
    return found


@pytest.fixture(params=["gemini-acp", "copilot-acp", "opencode-acp"])
def subject(request: pytest.FixtureRequest, repo: Path, tmp_path: Path, api: FakeApi) -> Subject:
    require_clis()
    name = request.param
    cli = CLIS[name.removesuffix("-acp")]
    write_files(repo, project_with_decoys(repo, api))
    make_subject("demo", tmp_path, repo, api)  # its skills/
    (repo / "agent_runtime.json").write_text(json.dumps({"runtimes": entries()}))
    return Subject(name, tmp_path, repo, api, get_adapter(name, repo), cli.model, cli.environment(api))


def run(subject: Subject, prompt: str, **given: object):  # type: ignore[no-untyped-def]
    return asyncio.run(subject.invoke(prompt, "ROLE-MARK", timeout=180, **given))


def test_one_server_one_tool_call_and_the_role(subject: Subject) -> None:
    result = run(subject, "[[mcp:a note]]")
    assert result.failure is None
    assert [call.result for call in result.tool_calls] == ["echo[runtime_session_id=S1] a note"]
    assert result.usage.output_tokens > 0
    assert "ROLE-MARK" in subject.api.model_requests()[-1].text
    assert [request.path for request in subject.api.asked("/decoy/")] == []


@pytest.mark.parametrize("permissions", ["ask", "edit", "all"])
def test_what_is_not_permitted_is_refused(subject: Subject, permissions: str) -> None:
    note, ran = subject.repo / "note.txt", subject.repo / "ran.txt"
    (subject.repo / "other.sh").write_text("touch ran.txt\n")
    result = run(subject, f"[[write:{note}]] [[thenshell:sh other.sh]]", permissions=permissions)
    assert result.failure is None
    assert note.exists() == (permissions != "ask")
    assert ran.exists() == (permissions == "all")


def test_a_skill_runs_and_sees_no_foreign_key(subject: Subject) -> None:
    given = {**subject.env, "XAI_API_KEY": "another vendor's"}
    result = run(subject, "[[shell:skills/env.sh XAI_API_KEY]]", env=given)
    assert "XAI_API_KEY is missing" in result.output


def test_an_api_error(subject: Subject) -> None:
    result = run(subject, "[[error:400]]")
    if subject.name == "copilot-acp":
        assert result.output.startswith("Error: 400")  # as docs/runtimes.md says
    else:
        assert result.failure.kind == "api-error"
    assert "fake error 400" in (result.error or result.output)


def test_an_unknown_session_is_refused(subject: Subject) -> None:
    unknown = "11111111-1111-4111-8111-111111111111"
    result = run(subject, "x", conversation_id=unknown, resume=True)
    assert result.failure.kind == "refused-argument"


def test_a_session_goes_on(subject: Subject) -> None:
    if subject.name == "gemini-acp":
        pytest.skip("not within a minute: docs/runtimes.md")
    first = run(subject, "one")
    second = run(subject, "two", conversation_id=first.conversation_id, resume=True)
    assert (second.failure, second.conversation_id) == (None, first.conversation_id)
    assert "n=2" in second.output
    assert second.usage == first.usage
