"""How a turn of a shipped executable begins and ends when something goes wrong around it."""

from __future__ import annotations

import fcntl
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_farm.runtimes.executables.adapter_session import Sessions
from agent_farm.runtimes.executables.shipped import executable_command
from agent_farm.runtimes.executables.turn import find_limits
from tests.gitrepo import git
from tests.runtimes.bench import Bench, made_bench
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what it needs is Linux's")


@pytest.fixture
def bench(repo: Path, tmp_path: Path) -> Iterator[Bench]:
    with made_bench(repo, tmp_path / "bench", "codex-cli") as made:
        yield made


def resume(bench: Bench, session: str, prompt: str) -> None:
    done = bench.call("resume", session, str(bench.state), prompt)
    assert (done.returncode, done.stderr) == (0, "")


def ended(bench: Bench, session: str) -> str:
    """As it was noted, not as it is told of a supervisor that is gone."""
    outcome = bench.directory(session) / "session.json"
    wait_until(lambda: not bench.supervisors(session), what="the supervisor to end")
    return str(json.loads(outcome.read_text())["status"])


def test_artifacts_are_what_the_session_made(bench: Bench) -> None:
    """With the command line of the contract's own example: brief and state in the repository."""
    brief, state = bench.repo / "session_auth_brief.md", bench.repo / "lego_state_auth.json"
    shutil.copy(bench.brief, brief)
    (bench.repo / "notes.txt").write_text("from before")
    done = bench.call(
        "spawn", brief.name, state.name, "SH echo 1 > src.py && git add . && git commit -qm All"
    )
    session = done.stdout.strip()
    bench.wait_for(session, "completed")
    assert json.loads(state.read_text())["artifacts"] == ["made.txt", "src.py"]


def test_artifacts_add_up_whatever_the_agent_makes_of_its_state(bench: Bench) -> None:
    session = bench.spawn("SH echo 1 > one.py")
    bench.wait_for(session, "completed")
    resume(bench, session, f'SH echo 2 > two.py\nSH echo \'{{"artifacts": ["mine"]}}\' > {bench.state}')
    bench.wait_for(session, "completed")
    state = bench.load_state()
    assert state["artifacts"] == ["mine", "made.txt", "one.py", "two.py"]
    assert state["lego_name"] == "auth"


@pytest.mark.parametrize(
    ("state", "brief", "text", "name"),
    [
        ("lego_state_auth.json", "session_login_brief.md", "# LEGO: Authentication\n", "auth"),
        ("state.json", "session_login_brief.md", "# LEGO: Authentication\n", "login"),
        ("state.json", "brief.md", "## Before\n\n# LEGO: Authentication\n", "Authentication"),
        ("state.json", "brief.md", "no heading\n", "brief"),
    ],
)
def test_the_name_is_that_of_the_files(bench: Bench, state: str, brief: str, text: str, name: str) -> None:
    bench.state, bench.brief = bench.state.with_name(state), bench.brief.with_name(brief)
    bench.brief.write_text(text)
    bench.wait_for(bench.spawn("done"), "completed")
    assert bench.load_state()["lego_name"] == name


@pytest.mark.parametrize("state", ["kept", "gone"])
def test_a_session_goes_on_without_its_brief(bench: Bench, state: str) -> None:
    session = bench.spawn("first")
    bench.wait_for(session, "completed")
    bench.brief.unlink()
    if state == "gone":
        bench.state.unlink()
    resume(bench, session, "second")
    bench.wait_for(session, "completed")
    assert bench.load_state()["lego_name"] == "auth"


def test_a_state_whose_directory_disappears_does_not_hide_the_end(bench: Bench) -> None:
    bench.state = bench.state.parent / "states" / bench.state.name
    session = bench.spawn(f"SH rm -r {bench.state.parent}")
    assert ended(bench, session) == "completed"
    assert bench.status(session) == "completed"
    assert not bench.state.parent.exists()
    assert "cannot write the state" in bench.log(session)
    assert not (bench.directory(session) / "prompt.txt").exists()


def test_a_state_that_disappears_is_written_whole(bench: Bench) -> None:
    session = bench.spawn(f"SH rm {bench.state}")
    assert ended(bench, session) == "completed"
    assert bench.load_state() == {
        "lego_name": "auth",
        "status": "completed",
        "current_substep": "done",
        "completed_substeps": [],
        "failure_count": 0,
        "artifacts": ["made.txt"],
    }


def test_every_damaged_state_is_kept(bench: Bench) -> None:
    bench.state.write_text("{one")
    session = bench.spawn(f"SH echo '{{two' > {bench.state}")
    assert ended(bench, session) == "completed"
    aside = bench.state.with_name(f"{bench.state.name}.damaged")
    assert aside.read_text() == "{one"
    assert aside.with_name(f"{aside.name}.1").read_text() == "{two\n"


@LINUX
def test_a_log_that_cannot_be_written_does_not_hide_the_end(bench: Bench) -> None:
    session = bench.spawn("first")
    bench.wait_for(session, "completed")
    log = bench.directory(session) / "adapter.log"
    log.unlink()
    log.symlink_to("/dev/full")
    resume(bench, session, "again")
    assert ended(bench, session) == "completed"
    assert bench.load_state()["status"] == "completed"


def test_a_signal_ends_the_cli_and_is_noted(bench: Bench) -> None:
    session = bench.spawn("HANG")
    bench.seen(0)
    for process in bench.supervisors(session):
        process.send_signal(signal.SIGTERM)
    assert ended(bench, session) == "failed"
    assert "ended by a signal" in bench.log(session)
    wait_until(lambda: not bench.processes(), what="no process to be left")


def test_a_killed_supervisor_takes_its_cli_along(bench: Bench) -> None:
    session = bench.spawn("HANG")
    bench.seen(0)
    for process in bench.supervisors(session):
        process.kill()
    wait_until(lambda: not bench.processes(), what="no process to be left")
    assert bench.status(session) == "failed"


@LINUX
def test_what_the_cli_put_into_the_background_goes_with_it(bench: Bench) -> None:
    session = bench.spawn("SH setsid sleep 600 >/dev/null 2>&1 &")
    bench.wait_for(session, "completed")
    wait_until(lambda: not bench.processes(), what="no process to be left")


def test_a_start_that_fails_is_a_failed_state(bench: Bench) -> None:
    session = bench.spawn("first")
    bench.wait_for(session, "completed")
    (bench.directory(session) / "prompt.txt").mkdir()
    done = bench.call("resume", session, str(bench.state), "again")
    assert done.returncode == 1
    assert "prompt.txt" in done.stderr
    assert bench.load_state()["status"] == "failed"


def test_those_who_ask_do_not_take_each_other_for_the_supervisor(bench: Bench) -> None:
    session = bench.spawn("done")
    assert ended(bench, session) == "completed"
    with open(bench.directory(session) / "alive.lock") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert not Sessions.of(bench.repo).load(session, "codex-cli").is_alive()


def test_half_a_session_keeps_no_other_from_beginning(bench: Bench) -> None:
    session = bench.spawn("done")
    assert ended(bench, session) == "completed"
    (bench.directory(session) / "session.json").unlink()
    assert bench.spawn("done") != session
    assert bench.call("check_status", session).returncode == 3


def test_a_session_of_another_runtime_is_unknown(bench: Bench, tmp_path: Path) -> None:
    session = bench.spawn("done")
    bench.wait_for(session, "completed")
    with made_bench(bench.repo, tmp_path / "other", "claude-mcp") as other:
        assert other.call("check_status", session).returncode == 3


def test_asking_makes_nothing(bench: Bench) -> None:
    assert bench.call("check_status", "nobody").returncode == 3
    assert not (bench.repo / ".agent-farm").exists()
    assert git(bench.repo, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("runtimes", "minutes"),
    [
        ({"codex-cli": {"timeout_minutes": 5}}, 5),
        ({"codex-cli": {"timeout_minutes": 5}, "broken": None}, 5),
        ({"a": {"adapter": "tools/codex-cli", "timeout_minutes": 7}}, 7),
        ({"a": {"adapter": "codex-cli", "timeout_minutes": 7}, "codex-cli": {"timeout_minutes": 5}}, 5),
        ({"codex-cli": {"timeout_minutes": float("nan")}}, 30),
        ({"codex-cli": {"timeout_minutes": "5"}}, 30),
        ([], 30),
    ],
)
def test_limits_are_those_of_the_entry_of_its_name(tmp_path: Path, runtimes: object, minutes: float) -> None:
    (tmp_path / "agent_runtime.json").write_text(json.dumps({"runtimes": runtimes}))
    assert find_limits(tmp_path, "codex-cli").timeout_minutes == minutes


def test_af_starts_it_with_a_python_that_does_not_listen_to_the_project(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow" / "json.py").write_text("raise SystemExit('shadowed')")
    words = [*executable_command("codex-cli"), "spawn", str(bench.brief), str(bench.state), "done"]
    env = {**bench.env, "PYTHONPATH": str(tmp_path / "shadow")}
    done = subprocess.run(words, cwd=bench.repo, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    session = done.stdout.strip()
    assert ended(bench, session) == "failed"  # the stand-in does listen to it
    assert "codex begin" in bench.log(session)
