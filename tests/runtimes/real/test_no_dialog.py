"""Nothing that a project, a model or a user's settings say leaves a builder in a dialog at its start."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake_api import FakeApi
from tests.gitrepo import git, write_files
from tests.runtimes.panes import pane_of, pane_order
from tests.runtimes.real.clis import CLIS, Cli, require_clis

pytestmark = pytest.mark.runtimes


def start(cli: Cli, place: Path, api: FakeApi, tmp_path: Path, model: str | None = None) -> list[str]:
    adapter = cli.adapter
    order = pane_order(
        adapter,
        tmp_path,
        place,
        prompt="hello",
        model=model,
        env=cli.environment(api),
        conversation_id=adapter.new_conversation_id(),
    )
    with pane_of(adapter, order) as pane:
        pane.wait_for_state("idle")
        return pane.states


@pytest.mark.parametrize("model", ["gpt-5.5", "gpt-5.6-luna"])
def test_codex_does_not_offer_another_model(model: str, worktree: Path, api: FakeApi, tmp_path: Path) -> None:
    require_clis()
    assert start(CLIS["codex"], worktree, api, tmp_path, model)[-2:] == ["working", "idle"]
    assert f'"model": "{model}"' in api.model_text()


def test_claude_does_not_ask_about_imports_of_outside_files(
    worktree: Path, api: FakeApi, tmp_path: Path
) -> None:
    require_clis()
    outside = tmp_path / "outside.md"
    outside.write_text("OUTSIDE-MARK\n")
    write_files(worktree, {"CLAUDE.md": f"PROJECT-CLAUDE-MARK\n@{outside}\n"})
    git(worktree, "commit", "-qam", "import")
    assert start(CLIS["claude-code"], worktree, api, tmp_path)[-2:] == ["working", "idle"]
    assert "PROJECT-CLAUDE-MARK" in api.model_text()
    assert "OUTSIDE-MARK" not in api.model_text()
