"""A farm at home, and machines that it reaches by ssh."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.fleet.machines import SSH, SSHD, Machines, Node, machines_for


@pytest.fixture
def machines(tmp_path: Path, home: Path, short: Path) -> Iterator[Machines]:
    if SSHD is None or SSH is None:
        pytest.skip("there is no sshd here: apt-get install openssh-server")
    with machines_for(home, tmp_path, short) as machines:
        yield machines


@pytest.fixture
def big(machines: Machines, af: Af) -> Node:
    """A machine that is in the fleet."""
    node = machines("big")
    added = af("fleet", "add", "ssh://big")
    assert added.returncode == 0, added.stderr
    return node
