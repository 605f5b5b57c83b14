"""The directory is gone afterwards, whatever happened, and nothing behind a link is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from agent_farm.ask.throwaway import remove_leftovers, throwaway_directory
from agent_farm.errors import AgentFarmError, TimedOut
from tests.ask.stage import Stage
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

ENDLESS = """
import subprocess, sys
deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", deaf])
open({pids!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
import time
time.sleep(600)
"""


@contextmanager
def running(stage: Stage, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    """`af …` in a process of its own whose agent never ends by itself."""
    stage.script(ENDLESS.format(pids=str(stage.root / "pids")))
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_farm", *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        wait_until(lambda: pids(stage), what="the agent and its child")
        yield process
    finally:
        for pid in (process.pid, *pids(stage)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=120)


def pids(stage: Stage) -> list[int]:
    path = stage.root / "pids"
    words = path.read_text().split() if path.exists() else []
    return [int(word) for word in words] if len(words) == 2 else []


def alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_success_leaves_nothing(stage: Stage, app: Path) -> None:
    stage.script("open('made by the agent', 'w').write('x')\nos.makedirs('a/b')\nos.chmod('a', 0o500)")
    stage.runner.ask(sources=["app"], question="Why?")
    assert stage.left() == []
    assert (app / "main.py").read_text() == "print('hello')\n"


def test_failure_leaves_nothing(stage: Stage, app: Path) -> None:
    stage.script("sys.exit(1)")
    with pytest.raises(AgentFarmError):
        stage.runner.ask(sources=["app"], question="Why?")
    assert stage.left() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_the_agents_whole_group(stage: Stage, app: Path, number: int) -> None:
    with running(stage, "ask", "-s", "app", "Why?") as process:
        os.kill(process.pid, number)
        process.wait(timeout=120)
        wait_until(lambda: not any(map(alive, pids(stage))), what="the end of the agent's processes")
    assert process.returncode == 128 + number
    assert stage.left() == []
    assert (app / "main.py").exists()


def test_kill_minus_nine_leaves_nothing_either(stage: Stage, app: Path) -> None:
    with running(stage, "ask", "-s", "app", "Why?") as process:
        process.kill()
        wait_until(lambda: not any(map(alive, pids(stage))), what="the end of the agent's processes")
        wait_until(lambda: stage.left() == [], what="the directory to go")
    assert (app / "main.py").exists()


def test_signal_to_a_chat_ends_its_group(stage: Stage, app: Path) -> None:
    with running(stage, "chat", "-s", "app") as process:
        process.terminate()
        process.wait(timeout=120)
        wait_until(lambda: not any(map(alive, pids(stage))), what="the end of the agent's processes")
    assert process.returncode == 143
    assert stage.left() == []


def test_processes_that_outlive_the_agent_are_ended(stage: Stage, app: Path) -> None:
    stage.script(
        "import subprocess\nchild = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(stage.root / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\nprint('done')"
    )
    assert stage.runner.ask(sources=["app"], question="Why?") == {"answer": "done\n"}
    assert not any(map(alive, pids(stage)))


def test_timeout_ends_the_agent(stage: Stage, app: Path) -> None:
    stage.script(ENDLESS.format(pids=str(stage.root / "pids")))
    with pytest.raises(TimedOut):
        stage.runner.ask(sources=["app"], question="Why?", timeout=10.0)
    assert pids(stage)
    assert not any(map(alive, pids(stage)))
    assert stage.left() == []


def leftover(stage: Stage) -> Path:
    """What a run leaves whose processes and guard were all killed at once."""
    path = stage.tmp / f"lctx-{uuid.uuid4()}"
    (path / ".gemini").mkdir(parents=True)
    (path / "prompt.md").write_text("secret question")
    return path


def test_next_run_removes_leftovers_and_follows_no_link(stage: Stage, app: Path) -> None:
    left = leftover(stage)
    (left / "app").symlink_to(app)
    (left / ".gemini" / "out").symlink_to(app)
    stage.runner.ask(sources=["app"], question="Why?")
    assert stage.left() == []
    assert (app / "main.py").read_text() == "print('hello')\n"


def test_a_link_under_a_runs_name_is_left_alone(stage: Stage, app: Path) -> None:
    link = stage.tmp / f"lctx-{uuid.uuid4()}"
    link.symlink_to(app)
    remove_leftovers(stage.tmp)
    assert link.is_symlink()
    assert (app / "main.py").exists()


def test_files_and_other_names_are_left_alone(stage: Stage) -> None:
    names = [
        stage.tmp / f"lctx-{uuid.uuid4()}",
        stage.tmp / "lctx-notes",
        stage.tmp / f"my-lctx-{uuid.uuid4()}",
    ]
    names[0].write_text("a file")
    names[1].mkdir()
    names[2].mkdir()
    remove_leftovers(stage.tmp)
    assert all(name.exists() for name in names)


def test_live_run_is_no_leftover(stage: Stage) -> None:
    with throwaway_directory(stage.tmp) as live:
        remove_leftovers(stage.tmp)
        with throwaway_directory(stage.tmp) as second:
            assert live.is_dir()
            assert second.is_dir()
    assert stage.left() == []


def test_source_inside_the_directory_of_a_run_cannot_be_emptied(stage: Stage, app: Path) -> None:
    """The agent swaps a directory of ours for a link to the user's files."""
    stage.script(
        "import shutil\nshutil.rmtree('.gemini')\n"
        f"os.symlink({str(app)!r}, '.gemini')\nos.symlink({str(app)!r}, 'again')"
    )
    stage.runner.ask(sources=["app"], question="Why?")
    assert stage.left() == []
    assert (app / "main.py").exists()
