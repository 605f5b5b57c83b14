"""An end is recorded when the runtime ended by itself, and nothing survives when tmux did."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

from agent_farm.tmux.foreground import is_running
from tests.pane.stage import SESSION, Stage, notice, wait_gone
from tests.tmux.stage import tmux
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_exit_codes(stage: Stage, code: int) -> None:
    stage.start_program(str(code))
    record = stage.exit()
    assert (record["exit_code"], record["signal"], record["run"]) == (code, None, "abcdef012345")
    end = stage.wait_for_end()
    assert end["state"] == ("exited" if code == 0 else "failed")
    assert end["reason"] == (None if code == 0 else f"exit code {code}")
    stage.wait_for_shell()
    assert end["state"] in stage.screen()
    assert "af resume task-1" in stage.screen()
    assert "af prune task-1" in stage.screen()


def test_the_last_line_of_one_that_ended_at_once_is_the_reason(stage: Stage) -> None:
    stage.start("/bin/sh", "-c", "echo starting; echo \"error: unknown option '--new'\" >&2; exit 1")
    assert stage.wait_for_end()["reason"] == "exit code 1: error: unknown option '--new'"


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGSEGV", "SIGHUP"])
def test_signals(stage: Stage, name: str) -> None:
    stage.start_program(name)
    record = stage.exit()
    assert (record["exit_code"], record["signal"]) == (None, name)
    assert stage.wait_for_end()["reason"] == f"killed by {name}"


def test_ctrl_c_and_ctrl_z_are_the_runtimes_own(stage: Stage) -> None:
    stage.start("cat")
    wait_until(lambda: "working" in stage.states(), what="the start")
    stage.type("C-z")
    stage.type("still here", "Enter")
    wait_until(lambda: stage.screen().count("still here") == 2, what="the echo")
    stage.type("C-c")
    assert stage.exit()["signal"] == "SIGINT"
    stage.wait_for_shell()


def test_the_shell_is_in_the_worktree_with_the_declared_environment(stage: Stage) -> None:
    tmux("new-session", "-d", "sleep 600")
    tmux("set-environment", "-g", "UNDECLARED", "secret")
    stage.start_program("0")
    stage.wait_for_shell()
    stage.type("pwd; echo [$UNDECLARED]; trap; kill -0 $$ && echo ok", "Enter")
    wait_until(lambda: "\nok" in stage.screen(), what="the answer")
    assert f"\n{stage.worktree}\n[]\nok" in stage.screen()
    stage.type("sleep 600", "Enter")
    wait_until(lambda: stage.server.panes().panes[SESSION].command == "sleep", what="the job")
    stage.type("C-c")
    wait_until(lambda: stage.server.panes().panes[SESSION].command == "sh", what="the shell")


def test_a_spoiled_terminal_is_restored(stage: Stage) -> None:
    stage.start_program("spoil")
    stage.wait_for_shell()
    assert stage.address
    modes = "#{alternate_on} #{mouse_any_flag} #{cursor_flag} #{scroll_region_upper} #{scroll_region_lower}"
    assert tmux("display-message", "-p", "-t", stage.address.pane_id, modes) == "0 0 1 0 49"
    stage.type("echo fi", "ne", "Enter")
    wait_until(lambda: "\nfine\n" in stage.screen(), what="a sane terminal")


def test_keys_for_the_runtime_never_reach_the_shell(stage: Stage) -> None:
    stage.start(
        "sh",
        "-c",
        f"stty -echo; touch {stage.root}/ready; while ! test -e {stage.root}/go; do sleep 0.02; done",
    )
    wait_until((stage.root / "ready").exists, what="the program")
    stage.type("touch typed", "Enter")
    (stage.root / "go").touch()
    stage.wait_for_shell()
    stage.type("echo next", "Enter")
    wait_until(lambda: "\nnext\n" in stage.screen(), what="the next command")
    assert not (stage.worktree / "typed").exists()


@pytest.mark.parametrize("what", ["child", "deaf-child"])
def test_what_the_runtime_leaves_behind_is_ended(stage: Stage, what: str) -> None:
    stage.start_program(what)
    assert stage.exit()["exit_code"] == 0
    wait_gone(int((stage.root / "child").read_text()))


@pytest.mark.parametrize("what", ["loner", "deaf-loner"])
def test_so_is_what_it_leaves_in_a_session_of_its_own(stage: Stage, what: str) -> None:
    stage.start_program(what)
    assert stage.exit()["exit_code"] == 0
    assert not is_running(stage.left_by("loner"))


def test_a_killed_runtime_leaves_nothing_either(stage: Stage) -> None:
    stage.start_program("tribe")
    child, loner = stage.left_by("child"), stage.left_by("loner")
    os.kill(stage.facts()["pid"], signal.SIGKILL)
    assert stage.exit()["signal"] == "SIGKILL"
    assert not is_running(child)
    assert not is_running(loner)


@pytest.mark.parametrize("how", ["exits", "is killed", "session is killed"])
def test_what_the_runtime_unpacks_goes_with_it(stage: Stage, how: str) -> None:
    """Its directory stays, for the shell has its name, too."""
    scratch = stage.root / "scratch"
    (scratch / "below").mkdir(parents=True)
    (scratch / "below" / "library.so").write_text("19 MB")
    address = stage.start_program("tribe" if how != "exits" else "loner", scratch=str(scratch))
    if how == "is killed":
        os.kill(stage.facts()["pid"], signal.SIGKILL)
    elif how == "session is killed":
        stage.left_by("loner")
        tmux("kill-session", "-t", address.session_id)
    empty = [(str(scratch), [], [])]
    wait_until(lambda: list(os.walk(scratch)) == empty, what="the empty directory")


@pytest.mark.parametrize(
    "how",
    ["kill-session", "kill-pane", "kill-server", "SIGTERM", "SIGHUP", "kill -9 server", "kill -9 launcher",
     "kill -9 both"],
)  # fmt: skip
def test_a_dying_pane_leaves_nothing_in_a_session_of_its_own(stage: Stage, how: str) -> None:
    address = stage.start_program("tribe")
    child, loner, launcher = stage.left_by("child"), stage.left_by("loner"), stage.pane_pid()
    server = int(tmux("display-message", "-p", "#{pid}"))
    if how.startswith("kill-"):
        target = {"kill-session": ("-t", address.session_id), "kill-pane": ("-t", address.pane_id)}
        tmux(how, *target.get(how, ()))
    elif how.startswith("SIG"):
        os.kill(launcher, signal.Signals[how])
    for word, pid in (("server", server), ("launcher", launcher)):
        if how in (f"kill -9 {word}", "kill -9 both"):
            os.kill(pid, signal.SIGKILL)
    for pid in (stage.facts()["pid"], child, loner):
        wait_gone(pid)
    assert not (stage.run / "exit.json").exists()


def test_a_killed_keeper_leaves_a_record_and_no_process(stage: Stage) -> None:
    stage.start_program("tribe")
    pids = [stage.facts()["pid"], stage.left_by("child"), stage.left_by("loner")]
    os.kill(stage.processes()["keeper"], signal.SIGKILL)
    record = stage.exit()
    assert (record["exit_code"], record["signal"]) == (None, "SIGKILL")
    assert "killed by SIGKILL" in stage.wait_for_end()["reason"]
    assert stage.states() == ["preparing", "working", "failed"]
    assert not [pid for pid in pids if is_running(pid)]
    stage.wait_for_shell()


def test_a_keeper_that_is_killed_while_preparing(stage: Stage) -> None:
    stage.start_program("stay", setup="setsid sleep 600 & echo $! >loner; sleep 600")
    loner = stage.worktree / "loner"
    wait_until(lambda: loner.exists() and loner.read_text(), what="the setup")
    (keeper,) = psutil.Process(stage.pane_pid()).children()
    keeper.kill()
    assert stage.wait_for_end()["state"] == "failed"
    assert not is_running(int(loner.read_text()))
    assert not (stage.run / "exit.json").exists()
    stage.wait_for_shell()


def test_what_the_setup_starts_lives_as_long_as_the_runtime(stage: Stage) -> None:
    stage.start_program("stay", setup="setsid sleep 600 & echo $! >loner")
    runtime = stage.facts()["pid"]
    loner = int((stage.worktree / "loner").read_text())
    assert is_running(loner)
    os.kill(runtime, signal.SIGTERM)
    stage.wait_for_end()
    assert not is_running(loner)


# As an agent does that calls `af spawn`: a tmux server comes up, or the farm's server.
AF_IN_A_PANE = """
import subprocess, sys
from pathlib import Path
from agent_farm.server import supervisor
from agent_farm.pane.pane_argv import launcher_argv
from agent_farm.tmux.server import TmuxServer
here = Path.cwd()
TmuxServer("others").start_session("af-other-task-2", launcher_argv("af-other-task-2", here), cwd=here)
server = [sys.executable, "-I", "-S", supervisor.__file__, "0", "sleep", "600"]
started = subprocess.Popen(server, stdin=subprocess.DEVNULL, start_new_session=True)
Path("supervisor").write_text(str(started.pid))
subprocess.run(["tmux", "-L", "own", "new-session", "-d", "sleep 600"], check=True)
"""


def test_servers_of_af_outlive_the_runtime_that_had_them_started(stage: Stage) -> None:
    names = ("PATH", "HOME", "TMUX_TMPDIR")
    stage.start(sys.executable, "-c", AF_IN_A_PANE, env={name: os.environ[name] for name in names})
    assert stage.exit()["exit_code"] == 0
    assert "af-other-task-2" in tmux("-L", "others", "list-sessions")
    supervisor = int((stage.worktree / "supervisor").read_text())
    assert is_running(supervisor)
    os.kill(supervisor, signal.SIGTERM)
    asked = subprocess.run(["tmux", "-L", "own", "list-sessions"], capture_output=True, check=False)
    assert asked.returncode == 1  # a server of the agent's own is ended like anything else


@pytest.mark.parametrize("what", ["stay", "deaf"])
@pytest.mark.parametrize("how", ["kill-session", "kill-server", "SIGTERM", "SIGHUP", "kill -9 server"])
def test_a_dying_pane_leaves_no_process_and_no_record(stage: Stage, what: str, how: str) -> None:
    address = stage.start_program(what)
    runtime, launcher = stage.facts()["pid"], stage.pane_pid()
    if how == "kill-session":
        tmux("kill-session", "-t", address.session_id)
    elif how == "kill-server":
        tmux("kill-server")
    elif how == "kill -9 server":
        os.kill(int(tmux("display-message", "-p", "#{pid}")), signal.SIGKILL)
    else:
        os.kill(launcher, signal.Signals[how])
    wait_gone(runtime)
    wait_gone(launcher) if "kill" in how else None
    assert stage.states() == ["preparing", "working"]
    assert not (stage.run / "exit.json").exists()


@pytest.mark.parametrize("how", ["kill-session", "SIGTERM"])
def test_a_runtime_may_say_goodbye(stage: Stage, how: str) -> None:
    stage.start_program("polite")
    runtime = stage.facts()["pid"]
    if how == "kill-session":
        stage.server.kill_session(stage.server.panes().panes[SESSION])
    else:
        os.kill(stage.pane_pid(), signal.SIGTERM)
    wait_gone(runtime)
    assert (stage.root / "goodbye").exists()
    assert not (stage.run / "exit.json").exists()


def test_the_runtimes_deaf_children_go_with_it(stage: Stage) -> None:
    stage.start_program("family")
    child = stage.root / "child"
    wait_until(lambda: child.exists() and child.read_text(), what="the child")
    stage.server.kill_session(stage.server.panes().panes[SESSION])
    assert not is_running(int(child.read_text()))


def test_a_killed_launcher_leaves_no_record_and_no_runtime(stage: Stage) -> None:
    stage.start_program("deaf")
    runtime = stage.facts()["pid"]
    os.kill(stage.pane_pid(), signal.SIGKILL)
    wait_until(lambda: stage.server.panes().panes[SESSION].dead, what="the dead pane")
    assert not (stage.run / "exit.json").exists()
    assert stage.states() == ["preparing", "working"]
    wait_gone(runtime)


def test_killing_the_session_means_that_everything_is_gone(stage: Stage) -> None:
    stage.start_program("deaf")
    runtime, launcher = stage.facts()["pid"], stage.pane_pid()
    pane = stage.server.panes().panes[SESSION]
    stage.server.kill_session(pane)
    assert not is_running(runtime)
    assert not is_running(launcher)
    assert stage.server.panes().panes == {}
    stage.server.kill_session(pane)  # gone already


def test_killing_a_session_whose_window_another_one_shows(stage: Stage) -> None:
    stage.start_program("stay")
    runtime = stage.facts()["pid"]
    tmux("new-session", "-d", "-s", "watching", "-t", f"={SESSION}")
    tmux("new-session", "-d", "-s", "mine", "sleep 600")
    stage.server.kill_session(stage.server.panes().panes[SESSION])
    assert not is_running(runtime)
    assert "mine" in tmux("list-sessions", "-F", "#{session_name}")


def test_a_stopped_launcher_ends_all_the_same(stage: Stage) -> None:
    stage.start_program("stay")
    launcher, runtime = stage.pane_pid(), stage.facts()["pid"]
    os.kill(launcher, signal.SIGSTOP)
    stage.server.kill_session(stage.server.panes().panes[SESSION])
    assert not is_running(launcher)
    assert not is_running(runtime)


def test_commands_at_the_end_outlive_the_pane(stage: Stage) -> None:
    said = 'printf "%s|%s|%s|%s" "$AF_BUILDER_ID" "$AF_STATE" "$AF_REASON" "$AF_WORKTREE"'
    script = f'sleep 0.3; {said} >"$1.part"; mv "$1.part" "$1"'
    notified, ended = stage.root / "notified", stage.root / "ended"
    stage.start_program(
        "3",
        notify=notice("/bin/sh", "-c", script, "sh", str(notified)),
        at_end=["/bin/sh", "-c", script, "sh", str(ended)],
    )
    stage.wait_for_end()
    stage.server.kill_session(stage.server.panes().panes[SESSION])
    wait_until(lambda: notified.exists() and ended.exists(), what="both commands")
    assert notified.read_text() == f"task-1|failed|exit code 3|{stage.worktree}"


def test_a_command_that_cannot_be_run_is_said(stage: Stage) -> None:
    stage.start_program("0", notify=notice("/no/such/notifier"))
    stage.wait_for_shell()
    assert "/no/such/notifier" in stage.screen()


def test_a_shell_that_is_not_there_is_replaced(stage: Stage) -> None:
    stage.start_program("0", **{"shell": ["/no/such/shell"]})
    stage.wait_for_shell()
