"""A session that was killed is gone with all its processes, or the error says what is left."""

from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_farm.errors import AgentFarmError
from agent_farm.tmux.foreground import is_running
from agent_farm.tmux.server import TmuxServer
from agent_farm.tmux.snapshot import PaneFacts
from tests.farm import shims
from tests.tmux.stage import tmux
from tests.tmux.test_start import launch
from tests.waiting import wait_until


def _started(server: TmuxServer, name: str, cwd: Path) -> PaneFacts:
    server.start_session(name, launch(name), cwd=cwd)
    return server.panes().panes[name]


def test_a_process_that_stays_is_told(tmp_path: Path) -> None:
    server = TmuxServer()
    address = server.start_session("af-farm-1", launch("af-farm-1", "ff"), cwd=tmp_path)
    wait_until(lambda: "deaf" in server.capture(address.pane_id), what="the program")
    pane = server.panes().panes["af-farm-1"]
    try:
        with pytest.raises(AgentFarmError, match="not all of it is gone") as caught:
            server.kill_session(pane, seconds=0.3)
        assert f"process {pane.pid}" in (caught.value.why or "")
    finally:
        os.kill(pane.pid, signal.SIGKILL)


def test_a_session_that_is_gone_is_fine_and_others_stay(tmp_path: Path) -> None:
    server = TmuxServer()
    first = _started(server, "af-farm-1", tmp_path)
    second = _started(server, "af-farm-12", tmp_path)
    server.kill_session(first)
    assert server.kill_sessions([first, replace(first, session_id="$77", pane_id="%77")]) == {}
    assert {name: one.pid for name, one in server.panes().panes.items()} == {"af-farm-12": second.pid}
    server.kill_sessions([first, second])
    server.kill_session(first)  # no server is left
    assert server.panes().panes == {}


@pytest.mark.parametrize("when", ["before it is told to end", "after"])
def test_who_gets_the_same_ids_of_a_new_server_stays(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last session takes its server with it, and the next builder begins another, which counts anew."""
    server = TmuxServer()
    first = _started(server, "af-farm-1", tmp_path)
    new = f"'{{real}}' new-session -d -- {shlex.join(launch('af-farm-2'))}"
    # An old server that has lost its last session may still take one more.
    begins = f"  '{{real}}' kill-server\n  for i in $(seq 200); do {new} && break; done"
    call = 1 if when == "before it is told to end" else 2
    shim = shims.make(tmp_path / "bin", "tmux", call, begins)
    with monkeypatch.context() as there:
        there.setenv("PATH", shim["PATH"])
        server.kill_session(first, seconds=60)
    second = server.panes().panes["af-farm-2"]
    assert (second.session_id, second.pane_id) == (first.session_id, first.pane_id)


def test_a_dead_pane_goes_with_its_session(tmp_path: Path) -> None:
    server = TmuxServer()
    server.start_session("af-farm-1", launch("af-farm-1", "0001"), cwd=tmp_path)
    wait_until(lambda: server.panes().panes["af-farm-1"].dead, what="the end")
    server.kill_session(server.panes().panes["af-farm-1"], seconds=60)
    assert server.panes().panes == {}


def test_a_server_without_a_session_has_no_panes(home: Path, tmp_path: Path) -> None:
    (home / ".tmux.conf").write_text("set -g exit-empty off\n")
    server = TmuxServer()
    server.kill_session(_started(server, "af-farm-1", tmp_path))
    assert tmux("display-message", "-p", "alive") == "alive"
    snapshot = server.panes()
    assert (snapshot.known, snapshot.panes) == (True, {})
    assert server.capture_many(["%0"]) == {}
    assert server.start_session("af-farm-1", launch(), cwd=tmp_path)


def test_a_zombie_runs_no_more() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    wait_until(lambda: not is_running(pid), what="the end")
    os.kill(pid, 0)  # still there
    os.waitpid(pid, 0)
    assert not is_running(pid)
