"""Headless sessions on other machines: begun once, followed and ended from here, and on record here."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from agent_farm.server.stopping import stop_server
from tests.conftest import Af
from tests.fleet.machines import Node
from tests.fleet.test_fleet import ok
from tests.fleet.test_lost_machines import kill, other
from tests.gitrepo import commit_files
from tests.sessions.records import Records, open_sessions
from tests.sessions.test_session_control import running, started
from tests.waiting import wait_until

__all__ = ["other"]  # a fixture

pytestmark = pytest.mark.slow
LONG = 120.0


@pytest.fixture
def log(repo: Path) -> Iterator[Records]:
    commit_files(repo, {"agent-farm.toml": '[spawn]\nruntime = "demo"\n'})
    yield open_sessions(repo)
    stop_server(repo, now=True)


def ended(log: Records, id: str) -> dict[str, Any]:
    wait_until(lambda: log.get(id)["ended_at"] is not None, timeout=LONG, what="the end of it")
    return log.get(id)


def test_a_session_there(af: Af, log: Records, big: Node) -> None:
    done = af("run", "--on", "big", "Say hello", timeout=LONG)
    assert done.returncode == 0, done.stderr
    assert "demo runs on big" in done.stderr
    (one,) = log.find(limit=0)
    record = log.get(one["id"])
    assert (record["state"], record["host"], record["success"]) == ("completed", "big", True)
    assert record["output"].strip() == done.stdout.strip()
    assert record["cwd"] is None
    there = json.loads(big.run(str(big.program), "sessions", one["id"], "--json"))["session"]
    assert (there["state"], there["output"]) == ("completed", record["output"])
    again = af("run", "--resume", one["id"], "And again", timeout=LONG)
    assert again.returncode == 0, again.stderr
    assert [log.get(found["id"])["host"] for found in log.find(limit=0)] == ["big", "big"]
    wrong = af("run", "--resume", one["id"], "--on", "local", "And again")
    assert "ran on big" in wrong.stderr


def test_ended_from_here_with_every_process(af: Af, log: Records, big: Node, repo: Path) -> None:
    ok(af, "trigger", "--on", "big", "--no-wait", "[[child:600]] [[sleep:600]]")
    record = running(log, calls=2)
    children = [psutil.Process(int(call["result"])) for call in record["tool_calls"]]
    assert all(str(big.home) in child.environ()["HOME"] for child in children)
    follow = started(repo, "sessions", "--follow", record["id"])
    ok(af, "sessions", "stop", record["id"])
    after = log.get(record["id"])
    assert (after["state"], after["error"]) == ("cancelled", "Cancelled: stopped by the architect")
    assert len(after["tool_calls"]) == 2
    assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)
    assert "cancelled" in follow.communicate(timeout=LONG)[1]


def test_one_that_waits_for_room_and_one_whose_command_is_ended(
    af: Af, log: Records, big: Node, repo: Path
) -> None:
    ok(af, "config", "set", "sessions.at_once", "1")
    run = started(repo, "run", "--on", "fleet", "[[child:600]] [[sleep:600]]")
    first = running(log, calls=2)
    children = [psutil.Process(int(call["result"])) for call in first["tool_calls"]]
    waiting = ok(af, "trigger", "--on", "fleet", "--no-wait", "waits").strip()
    assert (log.get(waiting)["state"], log.get(waiting)["host"]) == ("queued", "fleet")
    last = ok(af, "trigger", "--on", "fleet", "--no-wait", "goes on").strip()
    ok(af, "sessions", "stop", waiting)
    assert log.get(waiting)["started_at"] is None
    run.terminate()
    run.communicate(timeout=LONG)
    assert ended(log, first["id"])["state"] == "cancelled"
    psutil.wait_procs(children, timeout=LONG)
    assert ended(log, last)["state"] == "completed"


def lines_of(nodes: list[Node], name: str) -> int:
    """How often that was done, on whatever machine."""
    files = [
        file for node in nodes for farm in node.farms for file in farm.glob(f".agent-farm/butler/{name}")
    ]
    return sum(len(file.read_text().splitlines()) for file in files)


def test_a_machine_that_dies_in_the_middle(af: Af, log: Records, big: Node, other: Node) -> None:
    ok(af, "config", "set", "fleet.lost_seconds", "5")
    ok(af, "config", "set", "sessions.at_once", "2")
    ids = {ok(af, "trigger", "--on", "big", "--no-wait", "[[sleep:600]]").strip(): "none.md"}
    for number in range(10):
        prompt = f"[[sleep:1.5]] Write one line about it into n{number}.md"
        ids[ok(af, "trigger", "--on", "fleet", "--no-wait", prompt).strip()] = f"n{number}.md"
    wait_until(
        lambda: [one for one in log.find(states=("running",)) if one["host"] == "big"],
        what="one that runs there",
    )
    kill(big)
    had = {one["id"] for one in log.find(states=("running", "completed")) if one["host"] == "big"}
    ends = {id: ended(log, id) for id in ids}
    for id, name in ids.items():
        one = ends[id]
        assert (
            lines_of([big, other], name) == 1
            if one["state"] == "completed"
            else lines_of([big, other], name) <= 1
        )
        assert one["state"] == "completed" or id in had, one
    lost = [one for one in ends.values() if one["state"] == "interrupted"]
    assert lost
    assert all("big is lost" in one["error"] for one in lost)
    assert {one["host"] for one in ends.values() if one["id"] not in had} == {"other"}


def test_home_killed_in_the_middle(af: Af, log: Records, big: Node, repo: Path) -> None:
    id = ok(
        af, "trigger", "--on", "big", "--no-wait", "[[sleep:3]] Write one line about it into n.md"
    ).strip()
    running(log, calls=0)
    wait_until(
        lambda: big.farms and json.loads(big.run(str(big.program), "sessions", "--json"))["sessions"],
        what="it there",
    )
    server = json.loads((repo / ".agent-farm/server.json").read_text())
    for name in ("supervisor", "pid"):
        if server[name]:
            psutil.Process(server[name]).kill()
    assert log.get(id)["state"] == "running"
    wait_until(lambda: lines_of([big], "n.md") == 1, timeout=LONG, what="its work")
    ok(af, "sessions", "--follow", id)
    one = log.get(id)
    assert (one["state"], one["success"]) == ("completed", True)
    assert lines_of([big], "n.md") == 1


def test_a_machine_out_of_reach_is_passed_over(af: Af, log: Records, big: Node, other: Node) -> None:
    big.stop()
    done = af("run", "--on", "big", "Say hello", timeout=LONG)
    assert done.returncode == 1
    assert "big cannot be reached" in done.stderr
    for _ in range(2):
        ok(af, "run", "--on", "fleet", "Say hello")
    hosts = [(one["host"], one["state"]) for one in log.find(limit=0)]
    assert hosts == [("other", "completed"), ("other", "completed"), ("big", "failed")]


def test_a_connection_that_dies_as_it_begins(af: Af, log: Records, big: Node) -> None:
    """It was begun, and nobody heard so: asked again, it has begun once."""
    sound = big.program.read_text()
    cut = big.directory / "cut"
    big.program.write_text(
        "#!/bin/sh\n"
        f'case "$*" in "fleet answer") ;; *) exec {sound.split("exec ")[1].split()[0]} "$@";; esac\n'
        f"echo af-fleet-1\ncat >{big.directory}/asked.$$\n"
        f'{sound.split("exec ")[1].split()[0]} "$@" <{big.directory}/asked.$$ >{big.directory}/said.$$\n'
        f"if grep -q session_begin {big.directory}/asked.$$ && mkdir {cut} 2>/dev/null; then exit 9; fi\n"
        f"sed 1d {big.directory}/said.$$\n"
    )
    ok(af, "run", "--on", "big", "Write one line about it into n.md")
    assert cut.exists()
    assert lines_of([big], "n.md") == 1
    assert [one["state"] for one in log.find(limit=0)] == ["completed"]


SECRET = "hush-4711-hush"


def test_keys_are_for_that_session_alone(af: Af, log: Records, big: Node, repo: Path) -> None:
    commit_files(repo, {"agent-farm.toml": '[spawn]\nruntime = "demo"\n[env]\npass = ["TOKEN_OF_MINE"]\n'})
    words = ("run", "--yes", "--on", "big", "[[env:TOKEN_OF_MINE]]")
    with_it = af(*words, env={"TOKEN_OF_MINE": SECRET}, timeout=LONG)
    assert with_it.returncode == 0, with_it.stderr
    for place in (big.directory, repo):  # by another process: to close a database here would unlock it
        found = subprocess.run(["grep", "-rlF", SECRET, str(place)], capture_output=True, check=False)
        assert found.stdout == b""
    stop_server(repo, now=True)
    without = af(*words, timeout=LONG)
    assert without.returncode == 0, without.stderr
    first, second = (log.get(one["id"])["tool_calls"][0]["result"] for one in reversed(log.find(limit=0)))
    assert (first, second) == ("set", "unset")
    for process in psutil.process_iter():
        try:
            if process.environ().get("HOME") == str(big.home):
                assert SECRET not in process.environ().values()
        except (psutil.Error, OSError):
            continue


def test_settings_send_what_the_butler_does(af: Af, log: Records, big: Node) -> None:
    ok(af, "config", "set", "sessions.on", "fleet")
    ok(af, "schedule", "add", "digest", "0 8 * * *", "Write the digest")
    ok(af, "schedule", "run", "digest")
    ok(af, "run", "--on", "local", "Say hello")
    ok(af, "run", "Say hello")
    assert [one["host"] for one in reversed(log.find(limit=0))] == ["big", None, "big"]
    done = af("run", "--on", "fleet", "--cwd", ".", "Say hello")
    assert "--cwd cannot be combined with --on" in done.stderr
