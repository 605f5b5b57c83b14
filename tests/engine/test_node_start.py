"""Whose token it is, and that one node is started at a time. No Ray is needed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from agent_farm.disk import file_lock
from agent_farm.documents import store
from agent_farm.engine import nodes
from agent_farm.engine.child import NAMES, _clean
from agent_farm.engine.nodes import start_head, starting
from agent_farm.engine.ray_files import Node, make_token, node_file, node_lock, read_token, store_token
from agent_farm.errors import LockTaken, UsageError
from agent_farm.farm.farm import open_farm
from agent_farm.fleet.book import Book, Cluster, edit_book, read_book
from agent_farm.operations.fleet import clusters
from agent_farm.operations.fleet.clusters import FleetUp
from agent_farm.operations.operation import Context


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


def test_what_an_engine_adds_reaches_no_call() -> None:
    """Ray gives its workers variables of Python's, of compilers' and of its own."""
    of_the_user = {"PATH": "/usr/bin:/bin", "HOME": "/home/x", "PYTHONPATH": "/home/x/lib"}
    of_ray = {"PYTHONBREAKPOINT": "ray.util.rpdb.set_trace", "OMP_NUM_THREADS": "1", "RAY_JOB_ID": "1"}
    given = {**of_the_user, **of_ray, NAMES: ":".join([*of_the_user, "RAY_ADDRESS", "UNSET"])}
    assert _clean(given) == of_the_user


def test_a_node_knows_what_its_user_had_set(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, str] = {}

    def popen(*argv: object, env: dict[str, str], **how: object) -> None:
        given.update(env)
        raise OSError("no more processes")

    monkeypatch.setattr(nodes, "require_ray", lambda: None)
    monkeypatch.setattr("subprocess.Popen", popen)
    monkeypatch.setenv("OF_MINE", "1")
    with pytest.raises(OSError, match="no more"):
        start_head("127.0.0.1", 1, name="n1", slots=1)
    names = given[NAMES].split(":")
    assert "OF_MINE" in names
    assert not [name for name in names if name.startswith("RAY_")]


@pytest.mark.parametrize("module", ["agent_farm.engine.holder", "agent_farm.engine.ray_node"])
def test_what_others_use_outlives_who_started_it(module: str) -> None:
    """As `af fleet look --follow` ends: with all that it has begun, but not these."""
    code = f"""
import subprocess, sys
from agent_farm.descendants import end_children
words = [sys.executable, "-c", "import time; print(0, flush=True); time.sleep(600)"]
pids = []
for more in (["-m", {module!r}], []):
    how = {{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}}
    one = subprocess.Popen([*words, *more], **how, start_new_session=True)
    one.stdout.readline()
    pids.append(one.pid)
end_children(0.2)
print(*pids)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    stays, ends = map(int, said.split())
    try:
        assert psutil.pid_exists(stays)
        assert not psutil.pid_exists(ends)
    finally:
        os.kill(stays, signal.SIGKILL)


@pytest.mark.parametrize("words", [{}, {"host": "10.0.0.2"}, {"port": 7000}, {"cluster": "10.0.0.3:1"}])
def test_the_cluster_on_record_is_replaced_by_no_other(
    repo: Path, monkeypatch: pytest.MonkeyPatch, words: dict[str, Any]
) -> None:
    farm = open_farm(repo)
    with edit_book(farm) as held:
        held[0] = Book(held[0].farm, cluster=Cluster("10.0.0.1:6379"))
    for name in ("require_ray", "_start"):
        monkeypatch.setattr(clusters, name, lambda *given: pytest.fail("a node was started"))
    monkeypatch.setattr(clusters, "require_ray", lambda: None)
    with pytest.raises(UsageError, match=r"uses the cluster at 10\.0\.0\.1:6379"):
        clusters.fleet_up.answer_to(Context(farm), FleetUp(**words))
    assert read_book(farm).cluster == Cluster("10.0.0.1:6379")
