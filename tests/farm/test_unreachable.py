"""A tmux server that lives and cannot be found: "unknown" is not "gone"."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.conftest import Spawned, status_of

pytestmark = pytest.mark.slow

Spawn = Callable[..., Spawned]


@pytest.fixture
def hidden(spawn: Spawn) -> Iterator[Spawned]:
    """A builder at work whose server's socket somebody's cleaner took from the temporary directory."""
    builder = spawn()
    (socket,) = Path(os.environ["TMUX_TMPDIR"]).glob("tmux-*/default")
    away = socket.with_name("away")
    socket.rename(away)
    yield builder
    socket.unlink(missing_ok=True)
    away.rename(socket)


def test_it_is_unknown_and_says_why(hidden: Spawned, af: Af) -> None:
    status = status_of(af, hidden.id)["status"]
    assert status["state"] == "unknown"
    assert "its runtime (pid" in status["reason"]


def test_nothing_is_done_to_it(hidden: Spawned, af: Af) -> None:
    assert "No builder is lost" in af("recover", "--yes").stderr
    assert af("resume", hidden.id).returncode == 1
    assert af("prune", hidden.id, "--discard-changes", "--discard-commits").returncode == 4
    assert af("doctor", "--fix").returncode in (0, 1)
    assert hidden.state == "unknown"
    assert hidden.worktree.is_dir()


def test_stop_ends_it_all_the_same(hidden: Spawned, af: Af) -> None:
    assert af("stop", hidden.id).returncode == 0
    assert hidden.state == "stopped"
