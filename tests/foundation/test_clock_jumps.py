"""Nothing is deleted by its age by a clock that may be wrong."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from agent_farm.clock_jumps import STANDS_SECONDS, ClockJumped, note_time, require_steady_clock
from agent_farm.paths import FarmPaths
from tests.conftest import Af
from tests.waiting import wait_until

YEAR = 365 * 86400.0


def last_look(root: Path, ago: float, jumped: float | None = None) -> FarmPaths:
    """As it was left so many seconds ago, after a jump that was noticed `jumped` seconds ago."""
    paths, now = FarmPaths(root), time.time()
    paths.locks.mkdir(parents=True, exist_ok=True)
    at = None if jumped is None else now - jumped
    paths.clock.write_text(json.dumps({"version": 1, "seen": now - ago, "jumped": at}))
    paths.clock.chmod(0o600)
    return paths


def test_who_asks_is_told_once(tmp_path: Path) -> None:
    paths = last_look(tmp_path, YEAR)
    with pytest.raises(ClockJumped, match="clock may be wrong") as raised:
        require_steady_clock(paths, asked=True)
    assert "ahead by 365 days" in str(raised.value.why)
    require_steady_clock(paths, asked=True)


def test_what_nobody_asks_for_waits_until_the_time_has_stood(tmp_path: Path) -> None:
    paths = last_look(tmp_path, YEAR)
    for _ in range(2):
        with pytest.raises(ClockJumped):
            require_steady_clock(paths, asked=False)
    require_steady_clock(last_look(tmp_path, 86400, STANDS_SECONDS), asked=False)


def test_a_clock_that_is_set_back_is_believed_at_once(tmp_path: Path) -> None:
    require_steady_clock(last_look(tmp_path, -YEAR, -YEAR), asked=False)


@pytest.mark.parametrize("damaged", [None, "", "[", '{"version": 1, "seen": "x"}'])
def test_without_a_look_there_is_nothing_to_compare_with(tmp_path: Path, damaged: str | None) -> None:
    paths = last_look(tmp_path, 0)
    paths.clock.unlink() if damaged is None else paths.clock.write_text(damaged)
    require_steady_clock(paths, asked=False)
    assert json.loads(paths.clock.read_text())["seen"] == pytest.approx(time.time(), abs=60)


def test_what_cannot_be_written_keeps_nobody_from_deleting(tmp_path: Path) -> None:
    """A disk that is full is a reason to delete; a directory in its place cannot be replaced either."""
    paths = FarmPaths(tmp_path)
    paths.clock.mkdir(parents=True)
    note_time(paths)
    require_steady_clock(paths, asked=False)


def test_what_was_removed_outlives_a_jump(repo: Path, af: Af) -> None:
    assert af("spawn", "--runtime", "demo", "--name", "one", "--shell").returncode == 0  # makes no commit
    assert af("prune", "--stop", "one").returncode == 0
    assert FarmPaths(repo).clock.exists()
    last_look(repo, YEAR)
    refused = af("prune", "--expire", "1s")
    assert (refused.returncode, "the clock may be wrong" in refused.stderr) == (1, True)
    assert "one" in af("restore", "--list").stdout
    wait_until(lambda: "one of" in af("prune", "--expire", "1s").stdout, what="the same command again")


def test_an_expiry_where_no_farm_is_leaves_nothing_for_git_to_show(repo: Path, af: Af) -> None:
    before = sorted(repo.iterdir())
    assert af("prune", "--expire", "1h").returncode == 0
    assert sorted(repo.iterdir()) == before
