"""The limit of a butler's sessions holds whoever asks for them, and however its server ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent_farm.server.launching import running_server
from tests.gitrepo import commit_files
from tests.sessions.records import open_sessions
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

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


def test_what_a_killed_server_left_has_ended_before_the_next_session_begins(
    farm: Path, tmp_path: Path
) -> None:
    program, pid = tmp_path / "stubborn", tmp_path / "pid"
    program.write_text(STUBBORN.format(python=sys.executable, first=str(pid)))
    program.chmod(0o755)
    settings = f'[spawn]\nruntime = "demo"\n[runtimes.demo]\ncommand = "{program}"\n'
    commit_files(farm, {"agent-farm.toml": settings})
    first = start(farm, "run", "--yes", "--runtime", "demo", "stay")
    wait_until(lambda: pid.exists() and pid.read_text(), what="the first session")
    address = running_server(farm)
    assert address is not None
    assert address.pid  # 0 would be all of us
    os.kill(address.pid, signal.SIGKILL)
    assert "The server ended before it had answered" in first.communicate(timeout=60)[0]
    second = start(farm, "run", "--yes", "--runtime", "demo", "look")
    assert "alone\n" in second.communicate(timeout=60)[0]
    assert [record["state"] for record in open_sessions(farm).find()] == ["completed", "interrupted"]
