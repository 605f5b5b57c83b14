"""What scrolled off the screen, through libtmux, and clients that look at a session, also in a C locale."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_farm.errors import AgentFarmError
from agent_farm.tmux.server import TmuxServer
from tests.tmux.stage import tmux
from tests.tmux.test_start import launch
from tests.waiting import wait_until


@contextmanager
def terminal(*argv: str) -> Iterator[int]:
    """A client in a terminal of its own; its process id."""
    pid, master = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execvp(argv[0], argv)
    try:
        yield pid
    finally:
        os.close(master)
        os.waitpid(pid, 0)


@pytest.fixture(params=["C.UTF-8", "C"])
def locale(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("LC_ALL", request.param)
    return str(request.param)


def test_history_comes_with_the_screen(tmp_path: Path, locale: str) -> None:
    server = TmuxServer()
    argv = ("sh", "-c", "seq 1 200; printf '\\033[31mröd\\033[0m\\n'; sleep 600")
    pane = server.start_session("af-farm-1", argv, cwd=tmp_path, rows=20).pane_id
    wait_until(lambda: "röd" in server.capture(pane), what="the last line")
    assert not server.capture(pane).startswith("1\n")
    whole = server.capture(pane, history=1000)
    assert whole.startswith("1\n2\n")
    assert "\x1b[31mröd" in server.capture(pane, history=1000, escapes=True)
    assert "\x1b[31mröd" in server.capture(pane, escapes=True)
    with pytest.raises(AgentFarmError):
        server.capture("%99", history=10)
    with pytest.raises(AgentFarmError):
        server.capture("%99")


def clients_of(session: str) -> list[str]:
    return tmux("list-clients", "-t", session, "-F", "#{client_name}").splitlines()


@pytest.mark.parametrize("by_name", [True, False])
def test_attach_and_who_is_attached(tmp_path: Path, by_name: bool) -> None:
    server = TmuxServer()
    for name in ("af-farm-1", "af-farm-12"):
        server.start_session(name, launch(name), cwd=tmp_path)
    session = server.panes().panes["af-farm-1"].session_id
    assert clients_of(session) == []
    with terminal(*server.attach_argv("af-farm-1" if by_name else session)):
        wait_until(lambda: clients_of(session), what="the client")
        assert server.panes().panes["af-farm-1"].attached == 1
        (client,) = clients_of(session)
        other = server.panes().panes["af-farm-12"].session_id
        subprocess.run([*server.switch_client_argv("af-farm-12"), "-c", client], check=True)
        assert clients_of(other) == [client]
        tmux("kill-server")


def test_read_only_really_is(tmp_path: Path) -> None:
    server = TmuxServer()
    server.start_session("af-farm-1", launch(), cwd=tmp_path)
    with terminal(*server.attach_argv("af-farm-1", read_only=True)):
        wait_until(lambda: tmux("list-clients", "-F", "#{client_readonly}") == "1", what="the client")
        tmux("kill-server")


def test_being_inside_is_about_this_server(tmp_path: Path) -> None:
    server = TmuxServer()
    server.start_session("af-farm-1", launch(), cwd=tmp_path)
    path = tmux("display-message", "-p", "#{socket_path}")
    assert server.is_around({"TMUX": f"{path},1,0"})
    assert not server.is_around({"TMUX": "/elsewhere,1,0"})
    assert not server.is_around({})
