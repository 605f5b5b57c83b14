"""Keys and clouds by which a CLI is logged in without a login of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent_farm.runtimes import get_adapter
from tests.fake_api import FakeApi
from tests.runtimes.panes import pane_of, pane_order
from tests.runtimes.real.clis import CLIS, require_clis
from tests.runtimes.subjects import LONG_ROLE

pytestmark = pytest.mark.runtimes


@pytest.fixture(autouse=True)
def installed() -> None:
    require_clis()


def google_key_only(api: FakeApi) -> dict[str, str]:
    env = CLIS["gemini"].environment(api)
    return {**env, "GOOGLE_API_KEY": env.pop("GEMINI_API_KEY")} | {"GEMINI_API_KEY": ""}


def test_gemini_takes_a_key_under_its_other_name(api: FakeApi, repo: Path, tmp_path: Path) -> None:
    adapter, env = get_adapter("gemini"), google_key_only(api)
    assert adapter.problem(env) is None
    result = asyncio.run(adapter.invoke("hello", "", {}, env, cwd=repo))
    assert result.failure is None
    with pane_of(adapter, pane_order(adapter, tmp_path, repo, prompt="hello", env=env)) as pane:
        pane.wait_for_state("idle")
    assert {request.headers["x-goog-api-key"] for request in api.model_requests()} == {"fake-gemini-key"}


def test_gemini_says_which_variable_it_misses(api: FakeApi, repo: Path) -> None:
    """Vertex wants more than its switch; the line after the reason is no reason."""
    env = {"PATH": CLIS["gemini"].environment(api)["PATH"], "GOOGLE_GENAI_USE_VERTEXAI": "true"}
    result = asyncio.run(get_adapter("gemini").invoke("hello", "", {}, env, cwd=repo))
    assert result.failure is not None
    assert result.failure.kind == "not-logged-in"
    assert "GOOGLE_CLOUD_PROJECT" in result.failure.message


@pytest.mark.parametrize("headless", [True, False])
def test_codex_with_a_login_is_told_to_read_a_long_role(
    api: FakeApi, repo: Path, tmp_path: Path, home: Path, headless: bool
) -> None:
    """Its configuration home is the user's then, and no argument can hold the role."""
    cli, adapter = CLIS["codex"], get_adapter("codex")
    env, words = {"HOME": str(home), **cli.account(api, home, "login")}, cli.arguments(api, "login")
    if headless:
        result = asyncio.run(adapter.invoke("hello", LONG_ROLE, {}, env, cwd=repo, runtime_args=words))
        assert result.failure is None
    else:
        order = pane_order(adapter, tmp_path, repo, prompt="hello", env=env, role=LONG_ROLE, extra_args=words)
        with pane_of(adapter, order) as pane:
            pane.wait_for_state("idle")
        assert (order.place / "codex-role.md").read_text() == LONG_ROLE
        assert str(order.place / "codex-role.md") in api.model_text()
    assert "Read all of it before anything else" in api.model_text()


@pytest.mark.parametrize("headless", [True, False])
def test_claude_asks_a_cloud_instead_of_a_login(
    api: FakeApi, repo: Path, tmp_path: Path, headless: bool
) -> None:
    adapter = get_adapter("claude-code")
    env = {
        "PATH": CLIS["claude-code"].environment(api)["PATH"],
        "CLAUDE_CODE_USE_VERTEX": "1",
        "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1",
        "ANTHROPIC_VERTEX_PROJECT_ID": "a-project",
        "ANTHROPIC_VERTEX_BASE_URL": f"{api.url}/v1",
        "CLOUD_ML_REGION": "global",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    if headless:
        assert asyncio.run(adapter.invoke("hello", "", {}, env, cwd=repo)).failure is None
    else:
        order = pane_order(adapter, tmp_path, repo, prompt="hello", env=env)
        with pane_of(adapter, order) as pane:
            pane.wait_for_state("idle")
    assert "a-project" in api.model_requests()[0].path
