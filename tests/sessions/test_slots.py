"""The limit of a butler's sessions holds for all processes of a farm, however one of them ends."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent_farm.server.stopping import stop_server
from agent_farm.sessions.service import open_sessions
from tests.conftest import Af
from tests.gitrepo import commit_files
from tests.sessions.loop import in_loop
from tests.sessions.stage import make_butler, make_stage
from tests.sessions.test_spawner import Gate
from tests.waiting import wait_until

# A runtime that SIGTERM does not end; the run after it says whether it still lived.
STUBBORN = """#!{python}
import json, os, pathlib, signal, sys, time
first = pathlib.Path({first!r})
if "stay" in sys.stdin.read():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    first.write_text(str(os.getpid()))
    time.sleep(300)
lives = os.path.exists("/proc/" + first.read_text())
print(json.dumps({{"type": "result", "output": "beside it" if lives else "alone", "cost": 0, "usage": {{}}}}))
"""


@pytest.fixture
def farm(repo: Path) -> Iterator[Path]:
    commit_files(repo, {"agent-farm.toml": '[spawn]\nruntime = "demo"\n'})
    yield repo
    stop_server(repo, now=True)


def start(farm: Path, *words: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "agent_farm", *words]
    return subprocess.Popen(argv, cwd=farm, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def overlaps(records: list[dict[str, Any]]) -> list[tuple[str, str]]:
    ordered = sorted(records, key=lambda record: float(record["started_at"]))
    return [(a["prompt"], b["prompt"]) for a, b in pairwise(ordered) if b["started_at"] < a["ended_at"]]


def test_sessions_of_two_commands_do_not_overlap(farm: Path) -> None:
    commands = [start(farm, "run", "--runtime", "demo", f"[[sleep:0.7]] [[say:{n}]]") for n in range(3)]
    outputs = [command.communicate(timeout=60)[0] for command in commands]
    assert [command.returncode for command in commands] == [0, 0, 0], outputs
    records = open_sessions(farm).find(limit=0)
    assert [record["state"] for record in records] == ["completed"] * 3
    assert overlaps(records) == []
    assert sum("in the queue" in output for output in outputs) >= 1


def test_a_server_waits_for_the_command_that_came_before_it(farm: Path, af: Af) -> None:
    log = open_sessions(farm)
    first = start(farm, "run", "--runtime", "demo", "[[sleep:300]]")
    (record,) = wait_until(lambda: log.find(states=["running"]), what="the first session")
    later = af("trigger", "--no-wait", "[[say:later]]").stdout.strip()
    assert log.get(later)["state"] == "queued"
    first.terminate()
    first.communicate(timeout=60)
    wait_until(lambda: log.get(later)["state"] == "completed", what="the second session")
    assert log.get(record["id"])["state"] == "cancelled"
    assert overlaps(log.find(limit=0)) == []


def test_kill_9_frees_the_slot_once_nothing_of_the_session_runs_any_more(farm: Path, tmp_path: Path) -> None:
    program, pid = tmp_path / "stubborn", tmp_path / "pid"
    program.write_text(STUBBORN.format(python=sys.executable, first=str(pid)))
    program.chmod(0o755)
    settings = f'[spawn]\nruntime = "demo"\n[runtimes.demo]\ncommand = "{program}"\n'
    commit_files(farm, {"agent-farm.toml": settings})
    log = open_sessions(farm)
    first = start(farm, "run", "--yes", "--runtime", "demo", "stay")
    wait_until(lambda: pid.exists() and pid.read_text(), what="the first session")
    second = start(farm, "run", "--yes", "--runtime", "demo", "look")
    wait_until(lambda: log.find(states=["queued"]), what="the second session")
    first.kill()
    first.communicate(timeout=60)
    assert "alone\n" in second.communicate(timeout=60)[0]
    assert [record["state"] for record in log.find()] == ["completed", "interrupted"]


@in_loop
async def test_what_another_process_runs_takes_a_slot(tmp_path: Path) -> None:
    gate = Gate()
    here, there = (make_stage(tmp_path, gate.act, butler=make_butler(tmp_path, max_queued_sessions=0))
                   for _ in range(2))  # fmt: skip
    other = make_stage(tmp_path, gate.act, butler=make_butler(tmp_path, "mail"))
    running = asyncio.create_task(there.spawner.trigger("there"))
    await gate.holds(1)
    inner = await here.spawner.trigger("inner", trigger_source="trigger")
    assert "slots are taken" in (inner.error or "")
    assert "queue is full" in ((await here.spawner.trigger("outer")).error or "")
    gate.open()
    assert (await other.spawner.trigger("another butler's")).success
    assert (await running).success
    assert (await here.spawner.trigger("inner", trigger_source="trigger")).success


@in_loop
async def test_a_long_queue_in_one_process_does_not_starve_another(tmp_path: Path) -> None:
    gate = Gate()
    here, there = make_stage(tmp_path, gate.act), make_stage(tmp_path, gate.act)
    many = [asyncio.create_task(here.spawner.trigger(f"p{n}")) for n in range(30)]
    await gate.holds(1)
    one = asyncio.create_task(there.spawner.trigger("one"))
    await asyncio.sleep(0.2)  # it has its turn by then
    gate.open()
    await asyncio.wait([one, *many], return_when=asyncio.ALL_COMPLETED)
    starts = {record["prompt"]: record["started_at"] for record in here.records()}
    before = [prompt for prompt, at in starts.items() if at < starts["one"]]
    assert before == ["p0"]
    assert gate.most == 1
    assert overlaps(here.records()) == []


@in_loop
async def test_a_place_in_the_queue_is_given_back_when_its_caller_leaves(tmp_path: Path) -> None:
    gate = Gate()
    here, there = make_stage(tmp_path, gate.act), make_stage(tmp_path, gate.act)
    running = asyncio.create_task(there.spawner.trigger("there"))
    await gate.holds(1)
    waiting = asyncio.create_task(here.spawner.trigger("gives up"))
    await asyncio.sleep(0.1)
    waiting.cancel()
    await asyncio.wait([waiting])
    gate.open()
    assert (await running).success
    assert (await here.spawner.trigger("later", trigger_source="trigger")).success
    states = {record["prompt"]: (record["state"], record["started_at"]) for record in here.records()}
    assert states["gives up"] == ("cancelled", None)
