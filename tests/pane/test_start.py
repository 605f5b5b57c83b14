"""The runtime gets exactly the declared argv, environment, directory and terminal."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agent_farm.pane.pane_argv import launcher_argv
from tests.pane.stage import PROGRAMS, SESSION, Stage
from tests.tmux.stage import tmux
from tests.waiting import wait_until

HOSTILE = [
    "$(touch x)",
    "`id`",
    "-rf",
    "a;",
    ";",
    "\"'\\",
    "new\nline",
    "😀\u0301",
    "",
    "\udcff",
    "x" * 100_000,
]


def decoded(env: dict[str, str]) -> dict[str, str]:
    return {os.fsdecode(bytes.fromhex(k)): os.fsdecode(bytes.fromhex(v)) for k, v in env.items()}


def test_argv_arrives_byte_for_byte(stage: Stage) -> None:
    stage.start(sys.executable, "-I", PROGRAMS, "0", str(stage.facts_file), *HOSTILE)
    words = [os.fsdecode(bytes.fromhex(word)) for word in stage.facts()["argv"]]
    assert words[3:] == HOSTILE
    assert list(stage.worktree.iterdir()) == []


@pytest.mark.parametrize("locale", [None, "C", "de_DE.ISO-8859-1"])
def test_the_environment_is_the_declared_one_and_the_panes_own(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, locale: str | None
) -> None:
    tmux("new-session", "-d", "sleep 600")
    tmux("set-environment", "-g", "UNDECLARED", "secret")
    declared = {"PATH": os.environ["PATH"], "A": "ä\n😀 $(x)", "EMPTY": "", "TERM": "dumb"}
    declared |= {"LC_ALL": locale} if locale else {}
    address = stage.start_program("stay", env=declared)
    facts = stage.facts()
    got = decoded(facts["env"])
    assert got.pop("TERM").startswith(("tmux", "screen"))
    assert got.pop("TMUX_PANE") == address.pane_id
    assert got.pop("TMUX").startswith(tmux("display-message", "-p", "#{socket_path}"))
    got.pop("COLORTERM", None)
    del declared["TERM"]
    if locale is None:
        got.pop("LC_CTYPE", None)  # the test's own interpreter sets it
    assert got == declared


def test_the_launchers_own_environment_is_clean_too(stage: Stage) -> None:
    tmux("new-session", "-d", "sleep 600")
    tmux("set-environment", "-g", "UNDECLARED", "secret")
    stage.start_program("stay", env={"PATH": os.environ["PATH"], "KEY": "value"})
    keeper = stage.facts()["parent"]
    for process in (keeper, stage.pane_pid()):
        environ = Path(f"/proc/{process}/environ").read_bytes()
        assert b"KEY" not in environ
        assert b"secret" not in environ
        assert b"value" not in Path(f"/proc/{process}/cmdline").read_bytes()


def test_the_environment_leaves_the_disk_and_the_rest_stays(stage: Stage) -> None:
    hooks = {"states": {"Stop": "idle"}}
    stage.start_program("stay", env={"PATH": os.environ["PATH"], "KEY": "value"}, hooks=hooks)
    stage.facts()
    file = stage.run / "launch.json"
    left = json.loads(file.read_text())
    assert left["env"] is None
    assert (left["hooks"], left["builder"]) == (hooks, "task-1")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not any("value" in path.read_text() for path in stage.run.iterdir())


def test_the_runtime_has_the_terminal_and_default_signals(stage: Stage) -> None:
    stage.start_program("stay")
    facts = stage.facts()
    assert facts["pid"] == facts["group"] == facts["foreground"]
    assert facts["ignored"] == []
    assert facts["descriptors"] == []
    processes = json.loads((stage.run / "processes.json").read_text())
    known = {"launcher": stage.pane_pid(), "keeper": facts["parent"], "runtime": facts["pid"]}
    assert processes == {"run": "abcdef012345", **known}
    assert stage.states() == ["preparing", "working"]


@pytest.mark.parametrize("name", ["#(touch X)", "sp ace ;", "-c", "日本", "#{pane_id}"])
def test_paths_of_any_name(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    root.mkdir()
    stage = Stage(root)
    (stage.worktree / "sub").mkdir()
    stage.start_program("stay", cwd=str(stage.worktree / "sub"))
    assert stage.facts()["cwd"] == str(stage.worktree / "sub")
    assert list(tmp_path.glob("**/X")) == []


def test_a_directory_that_is_gone_is_a_failure(stage: Stage) -> None:
    stage.start_program("stay", cwd=str(stage.worktree / "gone"))
    end = stage.wait_for_end()
    assert end["state"] == "failed"
    assert "gone is gone" in end["reason"]
    stage.wait_for_shell()
    assert not (stage.run / "exit.json").exists()


def test_a_worktree_that_is_gone_is_a_failure_with_a_shell(stage: Stage) -> None:
    stage.start_program("stay", worktree=str(stage.root / "gone"))
    assert "the worktree" in stage.wait_for_end()["reason"]
    stage.wait_for_shell()


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("/no/such/program", "No such file"),
        ("no-such-program", "No such file"),
        ("/etc/passwd", "Permission denied"),
    ],
)
def test_a_runtime_that_cannot_be_started(stage: Stage, program: str, reason: str) -> None:
    stage.start(program)
    end = stage.wait_for_end()
    assert end["state"] == "failed"
    assert end["reason"].startswith(f"cannot start {program}: {reason}")
    stage.wait_for_shell()
    assert "cannot start" in stage.screen()


def test_a_respawned_pane_starts_nothing_twice(stage: Stage) -> None:
    address = stage.start_program("0")
    stage.wait_for_shell()
    stage.facts_file.unlink()
    tmux("respawn-pane", "-k", "-t", address.pane_id)
    wait_until(lambda: "af resume task-1" in stage.screen() and "already" in stage.screen(), what="the word")
    assert not stage.facts_file.exists()


@pytest.mark.parametrize("content", [None, "{", "[]", '{"version": 2}', '{"version": 1}'])
def test_a_launch_file_that_cannot_be_used_is_said_in_the_pane(stage: Stage, content: str | None) -> None:
    if content is not None:
        (stage.run / "launch.json").write_text(content)
    stage.address = stage.server.start_session(SESSION, launcher_argv(SESSION, stage.run), cwd=stage.worktree)
    pane = stage.address.pane_id
    wait_until(lambda: "[agent-farm]" in stage.server.capture(pane, history=50), what="the word")
    assert "Traceback" not in stage.server.capture(pane, history=50)
    wait_until(lambda: stage.server.panes().panes[SESSION].dead, what="the end")


@pytest.mark.parametrize(
    "program",
    ["pane.launcher", "pane.report", "runtimes.demo_agent.arguments", "runtimes.demo_agent.demo_pane"],
)
def test_what_is_started_with_each_builder_loads_little(program: str) -> None:
    """Two processes of the launcher live as long as a builder does; a hook calls `report` at each event."""
    heavy = "{'re', 'enum', 'typing', 'collections', 'contextlib', 'json', 'pathlib', 'subprocess', 'shutil'}"
    code = (
        f"import sys; sys.path.append({str(Path(__file__).parents[2])!r}); import agent_farm.{program};"
        f"print(sorted({heavy} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
