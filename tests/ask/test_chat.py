"""`SubagentRunner.chat`: the agent in the user's own terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.launch import Launch
from tests.ask.stage import Stage
from tests.runtimes.ptys import OnPty, on_pty
from tests.waiting import wait_until

# A session leader takes its standard input as its controlling terminal, as a login shell's child has it.
LEADER = """
import fcntl, os, struct, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 110, 0, 0))
os.execv(sys.argv[1], sys.argv[1:])
"""
# A shell with job control: it takes the terminal back when its child stops, and goes on with it on `fg`.
SHELL = """
set -m
"$@"
echo "shell is back $?"
fg
echo "ended $?"
"""


@contextmanager
def terminal(stage: Stage, *argv: str) -> Iterator[OnPty]:
    words = (sys.executable, "-c", LEADER, *argv)
    with on_pty(Launch(words, stage.root, dict(os.environ))) as running:
        yield running


def af(*args: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "agent_farm", *args)


def test_chat_runs_in_the_directory_without_a_prompt(stage: Stage, app: Path) -> None:
    stage.runner.chat(sources=["app"])
    seen = stage.seen()
    assert Path(seen["cwd"]).name.startswith("lctx-")
    assert seen["argv"] == []
    assert seen["links"] == {"app": str(app)}
    assert "prompt.md" not in seen["files"]
    assert ".mcp.json" in seen["files"]
    assert stage.left() == []


def test_chat_returns_nothing_after_the_agent_ended(stage: Stage, app: Path) -> None:
    ended = stage.root / "ended"
    stage.script(f"import time\ntime.sleep(0.3)\nopen({str(ended)!r}, 'w')")
    assert stage.runner.chat(sources=["app"]) is None
    assert ended.exists()


def test_chat_has_the_users_standard_streams(stage: Stage, app: Path) -> None:
    stage.script("sys.stdout.write(sys.argv[0] and 'to stdout')\nsys.stderr.write('to stderr')")
    done = subprocess.run(af("chat", "-s", "app"), input="hello", capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert done.stdout == "to stdout"
    assert done.stderr.endswith("to stderr")
    assert stage.seen()["stdin"] == "hello"


def test_chat_without_a_terminal_says_so_when_the_cli_wants_one(stage: Stage, app: Path) -> None:
    stage.script("sys.exit('stdin is not a TTY')")
    done = subprocess.run(
        af("chat", "-s", "app"), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "stdin is not a terminal" in done.stderr
    assert stage.left() == []


def test_failed_chat_leaves_nothing(stage: Stage, app: Path) -> None:
    stage.script("sys.exit(7)")
    with pytest.raises(AgentFarmError, match="exit code 7"):
        stage.runner.chat(sources=["app"])
    assert stage.left() == []


def test_chat_command_cannot_name_the_prompt(stage: Stage, app: Path) -> None:
    stage.use(chat="{agent} {prompt_file}")
    with pytest.raises(UsageError, match="cannot name the prompt"):
        stage.runner.chat(sources=["app"])
    assert stage.left() == []


def test_agent_owns_the_terminal_and_gives_it_back(stage: Stage, app: Path) -> None:
    stage.script("print('front', os.tcgetpgrp(0) == os.getpgrp(), input('say: '), flush=True)")
    with terminal(stage, "/bin/sh", "-c", '"$@"; echo "back $(cat)"', "sh", *af("chat", "-s", "app")) as user:
        user.wait_for("say: ")
        user.type(b"hello\n")
        user.wait_for("front True hello")
        wait_until(lambda: stage.left() == [], what="the directory to go")
        user.type(b"mine\n\x04")
        user.wait_for("back mine")


def test_ctrl_c_reaches_the_agent_alone(stage: Stage, app: Path) -> None:
    stage.script(
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n"
        "print('ready', flush=True)\nsignal.sigwait({signal.SIGINT})\nprint('went on')"
    )
    with terminal(stage, *af("chat", "-s", "app")) as user:
        user.wait_for("ready")
        user.type(b"\x03")
        user.wait_for("went on")
        assert user.end() == 0
    assert stage.left() == []


def test_suspended_agent_gives_the_shell_back_and_goes_on(stage: Stage, app: Path) -> None:
    stage.script(
        "import signal\nprint('ready', flush=True)\nos.kill(0, signal.SIGTSTP)\nprint('resumed', flush=True)"
    )
    with terminal(stage, "/bin/bash", "-c", SHELL, "bash", *af("chat", "-s", "app")) as user:
        user.wait_for("shell is back")
        user.wait_for("resumed")
        user.wait_for("ended 0")
    assert stage.left() == []
