"""A session starts whole, whatever is in the user's tmux.conf or in a directory's name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from libtmux import Pane, Server, Session

from agent_farm.errors import AgentFarmError, ToolMissing, UsageError
from agent_farm.tmux.server import TmuxServer
from agent_farm.tmux.start import PaneAddress
from agent_farm.tmux.usable import require_tmux, tmux_problem
from tests.tmux.stage import tmux
from tests.waiting import wait_until

LAUNCHER = str(Path(__file__).with_name("launcher.py"))
PLAIN = """
set -g base-index 1
setw -g pane-base-index 1
set -g destroy-unattached on
set -g default-command "/bin/false"
set -g default-shell /bin/sh
setw -g remain-on-exit off
set -g exit-empty on
setw -g automatic-rename on
set -g allow-rename on
"""
RENAMING = "set-hook -g after-new-session 'rename-session hooked'"
CROWDED = 'set-hook -g after-new-session \'split-window "sleep 9" ; new-window "sleep 9" ; rename-session x\''
WAITING = "set-hook -g after-new-session 'run-shell \"sleep 0.2\" ; rename-session late'"
AFTERWARDS = 'set-hook -g session-created \'rename-session "#{session_id}-mine" ; split-window "sleep 9"\''


def launch(name: str = "af-farm-1", directory: str = "6162") -> tuple[str, ...]:
    return (sys.executable, "-I", LAUNCHER, name, directory)


def option(flag: str, target: str, name: str) -> str:
    return tmux("show-options", flag, "-v", "-t", target, name)


def require_whole(server: TmuxServer, address: PaneAddress, cwd: Path) -> None:
    facts = server.panes().panes["af-farm-1"]
    assert (facts.session_id, facts.pane_id, facts.dead) == (address.session_id, address.pane_id, False)
    pane = Pane(server=Server(), pane_id=address.pane_id)  # seen with other eyes than ours
    assert pane.show_option("remain-on-exit") is True
    session = Session(server=pane.server, session_id=address.session_id)
    assert session.show_option("destroy-unattached") is False
    wait_until(
        lambda: f"cwd {cwd}" in server.capture(address.pane_id).replace("\n", ""), what="the directory"
    )


@pytest.mark.parametrize(
    "hooks",
    ["", RENAMING, CROWDED, WAITING, AFTERWARDS, f"{CROWDED}\n{AFTERWARDS}"],
    ids=["options", "renaming", "crowded", "waiting", "afterwards", "all"],
)
def test_a_hostile_configuration_changes_nothing(home: Path, tmp_path: Path, hooks: str) -> None:
    (home / ".tmux.conf").write_text(f"{PLAIN}\n{hooks}\n")
    server = TmuxServer()
    address = server.start_session("af-farm-1", launch(), cwd=tmp_path)
    tmux("list-sessions")  # another client comes and goes: the time for destroy-unattached
    require_whole(server, address, tmp_path)


def test_hooks_do_not_touch_the_users_own_sessions(home: Path, tmp_path: Path) -> None:
    (home / ".tmux.conf").write_text(CROWDED)
    tmux("new-session", "-d", "-s", "mine", "sleep 600")
    TmuxServer().start_session("af-farm-1", launch(), cwd=tmp_path)
    assert tmux("show-options", "-t", "$0", "destroy-unattached") == ""
    assert tmux("list-panes", "-s", "-t", "$0", "-F", "#{remain-on-exit}").split() == ["off", "off", "off"]


def test_a_program_that_ends_at_once_leaves_its_pane(home: Path, tmp_path: Path) -> None:
    (home / ".tmux.conf").write_text(PLAIN)
    server = TmuxServer()
    address = server.start_session("af-farm-1", launch("af-farm-1", "0003"), cwd=tmp_path)
    wait_until(lambda: server.panes().panes["af-farm-1"].dead, what="the end")
    facts = server.panes().panes["af-farm-1"]
    assert facts.pane_id == address.pane_id


@pytest.mark.parametrize(
    "name",
    ["#(touch X)", "#{pane_id}", "a;", ";", "-c", "sp ace", "日本語", "%H", "#[fg=red]", "'\"`$HOME`"],
)
def test_a_directory_of_any_name_is_just_a_directory(tmp_path: Path, name: str) -> None:
    directory = tmp_path / name
    directory.mkdir()
    server = TmuxServer()
    address = server.start_session("af-farm-1", launch(), cwd=directory)
    require_whole(server, address, directory)
    assert tmux("display-message", "-p", "-t", address.pane_id, "#{session_path}") == str(directory)
    assert sorted(tmp_path.glob("**/X")) == []


def test_the_servers_environment_holds_nothing_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "ANTHROPIC_API_KEY", "PYTHONPATH", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("EDITOR", "vi")  # the person's own sessions on this server want it
    address = TmuxServer().start_session("af-farm-1", launch(), cwd=tmp_path)
    known = tmux("show-environment", "-g") + tmux("show-environment", "-t", address.session_id)
    assert "secret" not in known
    names = {line.partition("=")[0] for line in known.splitlines()}
    assert {"PATH", "EDITOR"} <= names
    ours = "PATH HOME USER SHELL LANG LC_ALL TZ TERM COLORTERM TMPDIR PWD TMUX_TMPDIR EDITOR"
    assert {name for name in names if not name.startswith("XDG_")} <= set(ours.split(" "))


def test_variables_of_a_later_caller_stay_out_of_a_running_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tmux("new-session", "-d", "sleep 600")
    monkeypatch.setenv("SSH_AUTH_SOCK", "secret")
    address = TmuxServer().start_session("af-farm-1", launch(), cwd=tmp_path)
    assert "secret" not in tmux("show-environment", "-t", address.session_id)


def test_a_taken_name_is_an_error_and_leaves_the_other_alone(tmp_path: Path) -> None:
    server = TmuxServer()
    server.start_session("af-farm-1", launch(), cwd=tmp_path)
    with pytest.raises(AgentFarmError, match="already has a session named af-farm-1"):
        server.start_session("af-farm-1", launch(), cwd=tmp_path)
    assert list(server.panes().panes) == ["af-farm-1"]


def test_a_directory_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a directory"):
        TmuxServer().start_session("af-farm-1", launch(), cwd=tmp_path / "gone")


@pytest.mark.parametrize("words", [("single",), ("two", "words;")])
def test_words_that_tmux_would_read_are_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(ValueError):
        TmuxServer().start_session("af-farm-1", words, cwd=tmp_path)


@pytest.mark.parametrize("name", ["af-a:b", "af-a.b", "af-#(x)", "mine", "af-"])
def test_only_names_of_ours_are_given(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError):
        TmuxServer().start_session(name, launch(), cwd=tmp_path)


def test_a_socket_is_a_name_or_a_path(tmp_path: Path) -> None:
    sockets = Path(os.environ["TMUX_TMPDIR"])
    named, at_path = TmuxServer("other"), TmuxServer(str(sockets / f"tmux-{os.getuid()}" / "by path"))
    named.start_session("af-farm-1", launch(), cwd=tmp_path)
    at_path.start_session("af-farm-2", launch("af-farm-2"), cwd=tmp_path)
    assert list(named.panes().panes) == ["af-farm-1"]
    assert list(at_path.panes().panes) == ["af-farm-2"]
    assert TmuxServer().panes().panes == {}


def test_a_server_that_is_just_going_away_is_no_obstacle(tmp_path: Path) -> None:
    server = TmuxServer()
    for _ in range(10):
        server.start_session("af-farm-1", launch(), cwd=tmp_path)
        subprocess.run(["tmux", "kill-server"], check=False)
    assert server.start_session("af-farm-1", launch(), cwd=tmp_path).pane_id == "%0"


def _tmux_in(place: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = place / "tmux"
    program.write_text(f"#!/bin/bash\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")


def test_tmux_has_to_be_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    require_tmux()
    assert tmux_problem() is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install tmux" in (tmux_problem() or "")
    with pytest.raises(ToolMissing):
        require_tmux()
    with pytest.raises(ToolMissing):
        TmuxServer().start_session("af-farm-1", launch(), cwd=tmp_path)


def test_a_tmux_that_does_not_know_the_command_is_too_old(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = '[ "$*" = "-u -V" ] && { echo tmux 2.9a; exit; }; echo "unknown option -- E" >&2; exit 1'
    _tmux_in(tmp_path, old, monkeypatch)
    with pytest.raises(AgentFarmError) as error:
        TmuxServer().start_session("af-farm-1", launch(), cwd=tmp_path)
    assert "tmux 2.9a is older than 3.3" in str(error.value.why)


def test_an_old_tmux_with_a_server_of_its_own_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = shutil.which("tmux")
    old = f'[ "$*" = "-u -V" ] && {{ echo tmux 3.2a; exit; }}; exec {real} "${{@//\\#{{version\\}}/3.2a}}"'
    _tmux_in(tmp_path, old, monkeypatch)
    with pytest.raises(ToolMissing) as error:
        TmuxServer().start_session("af-farm-1", launch(), cwd=tmp_path)
    assert "tmux 3.2a is older than 3.3: " in str(error.value.why)


def test_what_an_older_server_started_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A new tmux talks to a server that an old one began."""
    older = f'exec {shutil.which("tmux")} "${{@//\\#{{version\\}}/3.2a}}"'
    _tmux_in(tmp_path, older, monkeypatch)
    with pytest.raises(ToolMissing) as error:
        TmuxServer().start_session("af-farm-1", launch(), cwd=tmp_path)
    assert "tmux 3.2a, which is older than 3.3" in str(error.value.why)
    assert TmuxServer().panes().panes == {}
