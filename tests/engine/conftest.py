"""Engines to be tested: this machine, and Ray with several nodes here, each with a home of its own."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from agent_farm.engine.held import HeldEngine
from tests.engine.engines import Cluster, Under, cluster_in, plain_here, plain_over_ssh
from tests.fleet.conftest import machines

__all__ = ["machines"]  # the fixture of machines over ssh
NO_RAY = find_spec("ray") is None
WHY = "ray is not installed: pip install -e '.[fleet]'"


@pytest.fixture
def cluster(tmp_path: Path, home: Path, short: Path) -> Iterator[Cluster]:
    if NO_RAY:
        pytest.skip(WHY)
    with cluster_in(tmp_path, short) as made:
        yield made


@pytest.fixture(params=["local", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ssh", "ray"))])
def under(request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch) -> Under:
    """An engine with machines n1 and n2, of two slots each, and how one of them is lost."""
    if request.param == "local":
        return plain_here()
    if request.param == "ssh":
        return plain_over_ssh(request.getfixturevalue("machines"))
    made: Cluster = request.getfixturevalue("cluster")
    made.start()
    for name in ("n1", "n2"):
        made.join(name, slots=2)
    return Under(HeldEngine(made.address), made.kill)
