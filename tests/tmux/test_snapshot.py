"""One question answers for all panes, and "could not ask" is told from "there is none"."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_farm.tmux.server import TmuxServer
from agent_farm.tmux.snapshot import read_snapshot
from agent_farm.tmux.tmux_process import TmuxAnswer, call_tmux
from tests.tmux.stage import tmux
from tests.tmux.test_start import launch
from tests.waiting import wait_until


def start(name: str, tmp_path: Path) -> None:
    TmuxServer().start_session(name, launch(name), cwd=tmp_path)


def test_no_server_is_a_definite_no(tmp_path: Path) -> None:
    assert (TmuxServer().panes().known, TmuxServer().panes().panes) == (True, {})
    start("af-farm-1", tmp_path)
    tmux("kill-server")
    wait_until(lambda: TmuxServer().panes().panes == {}, what="the end of the server")
    assert TmuxServer().panes().known


def test_a_server_that_cannot_be_asked_is_unknown(tmp_path: Path) -> None:
    start("af-farm-1", tmp_path)
    pid = int(tmux("display-message", "-p", "#{pid}"))
    os.kill(pid, signal.SIGSTOP)
    try:
        answer = call_tmux(None, (("list-panes", "-a"),), seconds=0.3)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert not read_snapshot(answer).known
    assert "did not answer" in (read_snapshot(answer).reason or "")
    assert list(TmuxServer().panes().panes) == ["af-farm-1"]


def test_a_socket_that_may_not_be_read_is_unknown() -> None:
    denied = TmuxAnswer(1, "", "error connecting to /tmp/x (Permission denied)")
    assert not read_snapshot(denied).known


def test_renamed_moved_and_split_panes_are_found(tmp_path: Path) -> None:
    for name in ("af-farm-1", "af-farm-2"):
        start(name, tmp_path)
    tmux("rename-session", "-t", "=af-farm-1", "oth␞er | name")
    tmux("rename-window", "-t", "$0:", "#{pane_id} ␞ x")
    tmux("split-window", "-d", "-t", "%0", "sleep 600")
    tmux("new-session", "-d", "-s", "mine", "sleep 600 af-farm-9 ab")
    snapshot = TmuxServer().panes()
    assert sorted(snapshot.panes) == ["af-farm-1", "af-farm-2"]
    facts = snapshot.panes["af-farm-1"]
    assert (facts.session_id, facts.pane_id, facts.session_name) == ("$0", "%0", "oth␞er | name")
    assert facts.activity == pytest.approx(time.time(), abs=60)


def test_a_grouped_session_does_not_double_a_pane(tmp_path: Path) -> None:
    start("af-farm-1", tmp_path)
    tmux("new-session", "-d", "-s", "aaa", "-t", "=af-farm-1")
    facts = TmuxServer().panes().panes["af-farm-1"]
    assert (facts.session_name, facts.session_id) == ("af-farm-1", "$0")


def test_a_builder_started_again_is_its_living_pane(tmp_path: Path) -> None:
    server = TmuxServer()
    server.start_session("af-farm-1", launch("af-farm-1", "0000"), cwd=tmp_path)
    wait_until(lambda: server.panes().panes["af-farm-1"].dead, what="the end")
    tmux("rename-session", "-t", "=af-farm-1", "old")
    second = server.start_session("af-farm-1", launch(), cwd=tmp_path)
    facts = server.panes().panes["af-farm-1"]
    assert (facts.pane_id, facts.dead) == (second.pane_id, False)
    tmux("rename-session", "-t", second.session_id, "second")
    third = server.start_session("af-farm-1", launch("af-farm-1", "0000"), cwd=tmp_path)
    wait_until(lambda: tmux("display", "-p", "-t", third.pane_id, "#{pane_dead}") == "1", what="the end")
    assert server.panes().panes["af-farm-1"].pane_id == second.pane_id


def test_names_survive_a_c_locale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LANG", raising=False)
    monkeypatch.setenv("LC_ALL", "C")
    start("af-farm-1", tmp_path)
    tmux("rename-session", "-t", "=af-farm-1", "日本")
    assert TmuxServer().panes().panes["af-farm-1"].session_name == "日本"


def test_many_screens_come_in_one_answer_without_those_that_are_gone(tmp_path: Path) -> None:
    server = TmuxServer()
    addresses = [server.start_session(f"af-farm-{n}", launch(f"af-farm-{n}"), cwd=tmp_path) for n in range(3)]
    for address in addresses:
        wait_until(lambda pane=address.pane_id: "cwd" in server.capture(pane), what="the screen")
    asked = ["%77", addresses[0].pane_id, "%78", addresses[2].pane_id, "%79"]
    screens = server.capture_many(asked)
    assert sorted(screens) == sorted([addresses[0].pane_id, addresses[2].pane_id])
    assert all(screen.startswith("cwd ") for screen in screens.values())
    tmux("kill-server")
    assert server.capture_many(asked) == {}


def test_status_does_not_pay_for_libtmux() -> None:
    code = (
        "import sys, agent_farm.tmux.server; sys.exit('libtmux' in sys.modules or 'asyncio' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
