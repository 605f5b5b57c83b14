"""`kill -9` of home, of its ssh and of what answers on the machine, at each step: as for builders here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm import shims
from tests.farm.contract import Full
from tests.farm.killing import Kill, kill_af
from tests.fleet.machines import Node
from tests.fleet.there import There, kill_answer, kill_ssh, spawn_at_each_step, spawn_there

pytestmark = pytest.mark.slow


@pytest.fixture
def there(af: Af, big: Node, repo: Path) -> There:
    return There(af, repo, big)


@pytest.fixture
def full(there: There) -> Full:
    return Full.at(there, spawn_there(there))


def way_to_kill(there: There, way: str, verb: str, directory: Path) -> Kill:
    if way == "home":
        return kill_af(there.repo)
    if way == "ssh":
        return kill_ssh(there.af, directory, shims.ENDS_ITSELF)
    return kill_answer(there.af, there.node, verb, way)


WAYS = ("home", "ssh", "itself")


@pytest.mark.parametrize("way", WAYS)
def test_spawn_killed_at_each_step(there: There, way: str, tmp_path: Path) -> None:
    count, made = spawn_at_each_step(there, way_to_kill(there, way, "place", tmp_path))
    assert count >= (1 if way == "ssh" else 20)  # one ssh, once the base is known there
    assert made or way == "ssh"


@pytest.mark.parametrize("way", WAYS)
def test_prune_killed_at_each_step(full: Full, there: There, way: str, tmp_path: Path) -> None:
    whole, removed = full.prune_at_each_step(way_to_kill(there, way, "prune", tmp_path), 1)
    assert whole
    assert removed or way == "ssh"


@pytest.mark.parametrize("way", WAYS)
def test_restore_killed_at_each_step(full: Full, there: There, way: str, tmp_path: Path) -> None:
    whole, removed = full.restore_at_each_step(way_to_kill(there, way, "restore", tmp_path), 1)
    assert whole or way == "ssh"
    assert removed
