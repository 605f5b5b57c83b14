"""`kill -9` of home, of its holder, of a machine's agent and of what answers there, on the way of each verb:
the walks of builders here (tests/farm/) and over ssh (tests/fleet/).

Only some of the ways and steps; all of them with AF_EVERY_STEP=1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engine.conftest import NO_RAY, WHY
from tests.engine.on_a_cluster import OnACluster, on_a_cluster
from tests.farm.contract import Full
from tests.farm.killing import Kill
from tests.farm.working import Working
from tests.fleet.there import spawn_at_each_step, spawn_there

EVERY_STEP = os.environ.get("AF_EVERY_STEP") == "1"  # read before the tests' own environment hides it
pytestmark = [pytest.mark.slow, pytest.mark.skipif(NO_RAY, reason=WHY)]

WAYS = ("home", "before", "after", "holder", "agent", "itself")  # of the holder: see OnACluster.kill_holder


@pytest.fixture(scope="module", autouse=True)
def there(tmp_path_factory: pytest.TempPathFactory, short: Path) -> Iterator[OnACluster]:
    """One cluster for all tests of this module."""
    with on_a_cluster(tmp_path_factory.mktemp("walks"), short) as place:
        yield place


@pytest.fixture(scope="module", autouse=True)
def home(there: OnACluster) -> None:
    """That of the cluster."""


@pytest.fixture
def full(there: OnACluster) -> Iterator[Full]:
    made = Full.at(there, spawn_there(there))
    yield made
    if made.is_whole("after the walk"):
        made.take_away()
    there.empty_trash()


@pytest.fixture
def working(there: OnACluster) -> Iterator[Working]:
    """What is left after the walk is what there should be."""
    made = Working.at(there, spawn_there(there))
    yield made
    there.heal("after the walk")
    there.clear(made.builder.id)


Way = Callable[[str], Kill]


@pytest.fixture
def way(request: pytest.FixtureRequest, there: OnACluster) -> Way:
    """Given what the machine is asked for."""
    name, stride = request.param
    return lambda verb: there.way(name, verb, stride)


def ways(**strides: int) -> pytest.MarkDecorator:
    """What dies, and at every how many of its steps."""
    chosen = dict.fromkeys(WAYS, 1) if EVERY_STEP else strides
    return pytest.mark.parametrize("way", chosen.items(), ids=chosen, indirect=True)


@ways(home=8, before=1, after=1, holder=30, agent=30, itself=20)
def test_spawn(there: OnACluster, way: Way) -> None:
    count, _ = spawn_at_each_step(there, way("place"))
    assert count


@ways(home=12, before=3, after=2, holder=30, agent=30, itself=20)
def test_prune(full: Full, way: Way) -> None:
    assert any(full.prune_at_each_step(way("prune"), 1))


@ways(home=8, before=2, after=1, holder=30, itself=20)
def test_restore(full: Full, way: Way) -> None:
    assert any(full.restore_at_each_step(way("restore"), 1))


@ways(after=1, agent=3)
def test_send(working: Working, way: Way) -> None:
    assert list(working.send_at_each_step(way("send")))


@ways(after=1)
def test_stop(working: Working, way: Way) -> None:
    assert list(working.stop_at_each_step(way("stop")))


@ways(after=1, agent=20)
def test_resume(working: Working, way: Way) -> None:
    assert list(working.resume_at_each_step(way("resume")))


@ways(before=2, after=2)
def test_merge(working: Working, way: Way) -> None:
    assert list(working.merge_at_each_step(way("status")))


@ways(after=1)
@pytest.mark.parametrize("verb", ["wait", "diff"])
def test_reading(working: Working, way: Way, verb: str) -> None:
    for what in working.read_at_each_step(way(verb), verb, working.builder.id):
        assert "has changed nothing" not in what  # which nobody knows: none of its commits has come home
