"""A thousand triggers, and a server killed in the middle of its work."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psutil
import pytest

from agent_farm.server.address import ServerAddress
from agent_farm.server.launching import ensure_server, running_server
from agent_farm.server.stopping import stop_server
from agent_farm.sessions.stores import open_database
from tests.gitrepo import commit_files
from tests.sessions.records import open_sessions, started
from tests.waiting import wait_until

TOML = '[butler]\nruntime = "demo"\nmax_concurrent_sessions = 8\nmax_queued_sessions = 1000\n'
MEGABYTE = 1 << 20


@pytest.fixture
def server(repo: Path) -> Iterator[ServerAddress]:
    commit_files(repo, {"codev/roster/busy/butler.toml": TOML})
    address = ensure_server(repo)
    urllib.request.urlopen(f"http://localhost:{address.port}/healthz", timeout=120).close()
    yield running_server(repo) or address
    stop_server(repo, now=True)


def trigger_all(root: Path, prompts: list[str]) -> list[str]:
    """The ids of the sessions, accepted in any order."""
    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(partial(started, root), prompts))


def states(root: Path) -> Counter[str]:
    rows = open_database(root).query("SELECT state FROM sessions")
    return Counter(row["state"] for row in rows)


@pytest.mark.slow
def test_a_thousand_triggers_eight_at_a_time(repo: Path, server: ServerAddress) -> None:
    process = psutil.Process(server.pid)
    ids = trigger_all(repo, [f"[[say:{number}]]" for number in range(1000)])
    assert len(set(ids)) == 1000
    wait_until(lambda: states(repo)["completed"] >= 200, timeout=400, what="200 sessions")
    early = process.memory_info().rss
    most = [0]

    def all_done() -> bool:
        found = states(repo)
        most[0] = max(most[0], found["running"])
        return found["completed"] + found["failed"] == 1000

    wait_until(all_done, timeout=800, what="1000 sessions")
    assert states(repo) == {"completed": 1000}
    assert most[0] == 8
    assert process.memory_info().rss - early < 10 * MEGABYTE
    rows = open_database(repo).query("SELECT prompt, output FROM sessions")
    assert all(row["prompt"] == f"[[say:{row['output']}]]" for row in rows)


@pytest.mark.slow
def test_kill_9_in_the_middle(repo: Path, server: ServerAddress) -> None:
    calls = [f"[[mcp:state_set {json.dumps({'key': str(n), 'value': 'x'})}]]" for n in range(60)]
    trigger_all(repo, calls)
    wait_until(lambda: states(repo)["completed"] >= 10, timeout=60, what="ten sessions")
    busy = wait_until(lambda: _at_work(repo), what="a session at work")
    assert server.pid  # 0 would be all of us
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: not any(process.is_running() for process in busy), what="the end of the orphans")
    log = open_sessions(repo)
    wait_until(
        lambda: not log.find(states=["queued", "running"], limit=0), what="the records to be put right"
    )
    found = log.find(limit=0)
    assert Counter(record["state"] for record in found).keys() == {"completed", "interrupted"}
    assert len(found) == 60
    assert all(record["success"] is (record["state"] == "completed") for record in found)
    up = ensure_server(repo)
    assert up.port == server.port
    with urllib.request.urlopen(f"http://localhost:{up.port}/healthz", timeout=120) as response:
        assert json.load(response)["accepting"]
    again = started(repo, "[[say:again]]")
    wait_until(lambda: log.get(again)["state"] == "completed", what="a session of the new server")
    rows = open_database(repo).query("SELECT input, count(*) AS times FROM served_calls GROUP BY input")
    assert {row["times"] for row in rows} == {1}
    assert len(log.find(limit=0)) == 61


def _at_work(repo: Path) -> list[psutil.Process]:
    mine = {record["id"] for record in open_sessions(repo).find(limit=0)}
    return [process for process in psutil.process_iter() if _session_of(process) in mine]


def _session_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("AF_SESSION")
    except psutil.Error:
        return None
