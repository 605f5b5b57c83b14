"""A configured command of several words, and arguments of every shape, headless as in a pane."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent_farm.runtimes import get_adapter
from tests.fake_api import FakeApi
from tests.runtimes.panes import pane_of, pane_order
from tests.runtimes.real.clis import CLIS, require_clis

pytestmark = pytest.mark.runtimes


@pytest.mark.parametrize("headless", [True, False])
def test_all_words_reach_claude(api: FakeApi, repo: Path, tmp_path: Path, headless: bool) -> None:
    require_clis()
    adapter, env = get_adapter("claude-code"), CLIS["claude-code"].environment(api)
    places = [tmp_path / "one place", tmp_path / "it's another"]
    for place in places:
        place.mkdir()
    command = ("env", "FARM_MARK=$(touch x) 'quoted'", "claude", "--append-system-prompt", "WORDS-MARK two")
    words = ["--add-dir", str(places[0]), "--add-dir", str(places[1]), "--model=of-the-words", "-d", "api"]
    prompt = "[[shell:skills/mark.sh]]"
    (repo / "skills").mkdir()
    (repo / "skills" / "mark.sh").write_text('#!/bin/sh\necho "mark: $FARM_MARK"\n')
    (repo / "skills" / "mark.sh").chmod(0o755)
    if headless:
        result = asyncio.run(
            adapter.invoke(prompt, "", {}, env, cwd=repo, command=command, runtime_args=words)
        )
        assert result.failure is None
    else:
        order = pane_order(
            adapter,
            tmp_path,
            repo,
            prompt=prompt,
            env=env,
            command=command,
            extra_args=tuple(words),
            permissions="all",
        )
        with pane_of(adapter, order) as pane:
            pane.wait_for_state("idle")
    heard = api.model_text()
    assert "WORDS-MARK two" in heard
    assert "mark: $(touch x) 'quoted'" in heard
    assert all(str(place) in heard for place in places)
    assert "of-the-words" in {request.body.get("model") for request in api.model_requests()}
    assert not (repo / "x").exists()
