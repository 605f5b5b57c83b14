"""With the default permissions the model can commit, once a person agrees where it has to ask."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent_farm.runtimes.bounds import NONE, Bounds
from tests.fake_api import FakeApi
from tests.gitrepo import git
from tests.runtimes.panes import Pane, pane_of, pane_order
from tests.runtimes.real.clis import CLIS, Cli, require_clis
from tests.waiting import wait_until

pytestmark = pytest.mark.runtimes

COMMIT = "[[shell:touch new.txt && git add new.txt && git commit -qm made]]"


def test_in_a_pane(cli: Cli, worktree: Path, api: FakeApi, tmp_path: Path) -> None:
    before = git(worktree, "rev-parse", "HEAD")
    order = pane_order(
        cli.adapter,
        tmp_path,
        worktree,
        prompt=COMMIT,
        model=cli.model,
        env=cli.environment(api),
        conversation_id=cli.adapter.new_conversation_id(),
    )

    with pane_of(cli.adapter, order) as pane:
        wait_until(lambda: committed(worktree, before) or agreed(pane), what="the commit")
        wait_until(lambda: committed(worktree, before), what=f"the commit\n{pane.screen}")
    assert git(worktree, "log", "-1", "--format=%an <%ae> %cn %s") == "Test <test@example.invalid> Test made"


def committed(worktree: Path, before: str) -> bool:
    return git(worktree, "rev-parse", "HEAD") != before


def agreed(pane: Pane) -> bool:
    if pane.label != "dialog":
        return False
    pane.accept_dialog()
    return True


@pytest.mark.parametrize("bounds", [NONE, Bounds(keeps=(Path("/nowhere/butler.toml"),))])
@pytest.mark.parametrize("linked", [True, False])
def test_codex_headless(linked: bool, bounds: Bounds, worktree: Path, api: FakeApi, tmp_path: Path) -> None:
    require_clis()
    cli = CLIS["codex"]
    place = worktree if linked else tmp_path / "repo"
    before = git(place, "rev-parse", "HEAD")
    env = {**cli.environment(api), "HOME": str(tmp_path / "home")}
    home = tmp_path / "runtime-home"
    run = cli.adapter.invoke(COMMIT, "", {}, env, cwd=place, home=home, timeout=60, bounds=bounds)
    result = asyncio.run(run)
    assert result.failure is None
    assert committed(place, before), result
