"""Commands about a builder, killed at each step; of spawn, prune and restore see `test_spawn_killed.py` and
`test_prune_killed.py`, of merge `tests/landing/test_merge_cut_short.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.contract import Here, Spawn
from tests.farm.killing import kill_af
from tests.farm.working import LANDS, Working

pytestmark = pytest.mark.slow


@pytest.fixture
def working(af: Af, repo: Path, spawn: Spawn) -> Iterator[Working]:
    """What is left after the walk is what there should be."""
    here = Here(af, repo)
    yield Working.at(here, spawn)
    here.heal("after the walk")


def test_send(working: Working, repo: Path) -> None:
    came = [times for _, times in working.send_at_each_step(kill_af(repo))]
    assert {1, 2} == set(came)  # of the killed one and the next, or of the next alone


def test_stop(working: Working, repo: Path) -> None:
    assert list(working.stop_at_each_step(kill_af(repo)))


def test_resume(working: Working, repo: Path) -> None:
    assert list(working.resume_at_each_step(kill_af(repo)))


def test_recover(working: Working, repo: Path) -> None:
    assert list(working.recover_at_each_step(kill_af(repo)))


def test_sync(working: Working, repo: Path) -> None:
    assert list(working.sync_at_each_step(kill_af(repo)))


def test_merge_and_prune(working: Working, repo: Path) -> None:
    found = list(working.merge_at_each_step(kill_af(repo), "--prune", first=LANDS))
    assert {is_there for _, is_there in found} == {True, False}
