"""Whatever part of a builder is killed: no process is left, and what is said of it is true."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from agent_farm.tmux.foreground import is_running
from tests.conftest import Af
from tests.farm.conftest import status_of
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class AtWork:
    """A builder in the middle of its turn, with children in its own session and in another one."""

    af: Af
    repo: Path
    id: str

    @property
    def processes(self) -> dict[str, int]:
        file = self.repo / ".agent-farm/runs" / self.id / "processes.json"
        wait_until(file.exists, what="the start of the runtime")
        return dict(json.loads(file.read_text()))

    @property
    def status(self) -> dict[str, str]:
        return status_of(self.af, self.id)["status"]

    def left(self) -> list[psutil.Process]:
        """Processes with the builder's environment, but for the shell that the launcher becomes."""
        launcher = self.processes["launcher"]
        return [one for one in psutil.process_iter() if one.pid != launcher and self._is_of_it(one)]

    def sessions(self) -> set[int]:
        found = set()
        for one in self.left():
            with suppress(OSError):  # a hook that has ended by now
                found.add(os.getsid(one.pid))
        return found

    def _is_of_it(self, process: psutil.Process) -> bool:
        with suppress(psutil.Error, OSError):
            return (
                process.status() != psutil.STATUS_ZOMBIE
                and process.environ().get("AF_BUILDER_ID") == self.id
                and process.environ().get("AF_ROOT") == str(self.repo)
            )
        return False

    def kill(self, *victims: str) -> None:
        """The numbers first: a part may go with another one."""
        pids = self.processes
        server = psutil.Process(pids["launcher"]).ppid()
        for victim in victims:
            if victim == "pane":
                _tmux("kill-pane", "-t", _pane())
            else:
                os.kill({**pids, "server": server}[victim], signal.SIGKILL)


@pytest.fixture
def builder(af: Af, repo: Path) -> AtWork:
    done = af("spawn", "[[child:600]] [[sleep:600]]", "--runtime", "demo", "--json")
    assert done.returncode == 0, done.stderr
    made = AtWork(af, repo, json.loads(done.stdout)["builder"]["id"])
    wait_until(lambda: len(made.left()) >= 3 and len(made.sessions()) >= 2, what="the children")
    return made


@pytest.mark.parametrize(
    ("victim", "state", "reason"),
    [
        ("runtime", "failed", "killed by SIGKILL"),
        ("keeper", "failed", "killed by SIGKILL"),
        ("launcher", "lost", "its launcher was killed"),
        ("pane", "lost", "its tmux session is gone"),
        ("server", "lost", "its tmux session is gone"),
    ],
)
def test_killing_a_part_leaves_no_process_and_the_status_is_true(
    builder: AtWork, victim: str, state: str, reason: str
) -> None:
    builder.kill(victim)
    wait_until(lambda: not builder.left(), what="no process to be left")
    wait_until(lambda: builder.status["state"] == state, what=state)
    assert reason in builder.status["reason"]
    assert builder.af("doctor").returncode == 0


def orphaned(builder: AtWork) -> list[psutil.Process]:
    """Both that would have ended it are killed, so that a child in a session of its own is left."""
    keeper = builder.processes["keeper"]
    os.kill(keeper, signal.SIGSTOP)  # or it would end all the rest between the two
    builder.kill("launcher", "keeper")
    wait_until(lambda: len(builder.left()) == 1, what="the runtime and its group to end")
    assert builder.status["state"] == "lost"
    return builder.left()


def test_what_only_doctor_can_end(builder: AtWork) -> None:
    (loner,) = orphaned(builder)
    told = builder.af("doctor")
    assert told.returncode == 1
    line = next(line for line in told.stdout.splitlines() if str(loner.pid) in line)
    assert builder.id in line
    assert builder.left() == [loner]
    fixed = builder.af("doctor", "--fix")
    assert fixed.returncode == 0, fixed.stdout
    assert builder.left() == []
    assert builder.af("doctor").returncode == 0


@pytest.mark.parametrize(
    "words",
    [("stop",), ("resume",), ("prune", "--discard-changes", "--discard-commits"), ("recover", "--yes")],
    ids=lambda words: words[0],
)
def test_other_commands_end_it_first(builder: AtWork, words: tuple[str, ...]) -> None:
    (loner,) = orphaned(builder)
    command, *options = words
    named = () if command == "recover" else (builder.id,)
    done = builder.af(command, *named, *options)
    assert done.returncode == 0, done.stderr
    assert not is_running(loner.pid)


def test_undoing_a_spawn_that_was_cut_short_ends_it_first(builder: AtWork) -> None:
    (loner,) = orphaned(builder)
    file = builder.repo / ".agent-farm/registry.json"
    registry = json.loads(file.read_text())
    registry["builders"][builder.id]["state"] = "creating"
    file.write_text(json.dumps(registry))
    assert builder.af("doctor", "--fix").returncode == 0
    assert not is_running(loner.pid)


def test_a_person_in_the_shell_that_is_left_is_no_leftover(builder: AtWork) -> None:
    builder.kill("runtime")
    wait_until(lambda: _tmux("list-panes", "-a", "-F", "#{pane_current_command}") == "bash", what="the shell")
    _tmux("send-keys", "-t", _pane(), "sleep 600 &", "Enter")
    wait_until(builder.left, what="the person's own job")
    assert builder.af("doctor", "--fix").returncode == 0
    assert builder.left()


def _pane() -> str:
    return _tmux("list-panes", "-a", "-F", "#{pane_id}")


def _tmux(*words: str) -> str:
    return subprocess.run(["tmux", *words], capture_output=True, text=True, check=True).stdout.strip()
