"""Whose token it is, and that one node is started at a time. No Ray is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.disk import file_lock
from agent_farm.documents import store
from agent_farm.engine.nodes import starting
from agent_farm.engine.ray_files import Node, make_token, node_file, node_lock, read_token, store_token
from agent_farm.errors import LockTaken, UsageError


def test_the_token_of_a_cluster_that_was_joined_is_not_that_of_a_head_here(home: Path) -> None:
    foreign = "f" * 32
    make_token()
    own = read_token()
    store_token(foreign)
    make_token()
    assert read_token() == own != foreign


def test_one_node_is_started_at_a_time(home: Path) -> None:
    with starting(), pytest.raises(LockTaken, match="starts a node"), starting():
        pass
    store(node_file(), Node(1, "10.0.0.1:1", "n1", ""))
    with file_lock(node_lock()), pytest.raises(UsageError, match="runs here already"), starting():
        pass
    with starting():
        pass
