"""Builders of an external executable: messages while it works, and what a resume does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.conftest import status_of
from tests.gitrepo import write_files
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

Spawn = Callable[[str], str]


@pytest.fixture
def sessions(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the executable keeps its sessions."""
    lego = Path(__file__).with_name("lego.py").read_text()
    declared = json.dumps({"runtimes": {"lego": {"adapter": "lego.py"}}})
    settings = '[env]\npass = ["LEGO_HOME"]\n'
    write_files(repo, {"lego.py": lego, "agent_runtime.json": declared, "agent-farm.toml": settings})
    (repo / "lego.py").chmod(0o755)
    monkeypatch.setenv("LEGO_HOME", str(repo.parent / "lego-sessions"))
    return repo.parent / "lego-sessions"


@pytest.fixture
def spawn(af: Af, sessions: Path) -> Spawn:
    def spawned(task: str) -> str:
        done = af("spawn", task, "--runtime", "lego", "--yes")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return spawned


def heard(sessions: Path) -> list[str]:
    """What its agent was told, whichever session it was."""
    return [text for file in sorted(sessions.glob("*/heard.json")) for text in json.loads(file.read_text())]


def wait_for(af: Af, id: str, state: str) -> None:
    wait_until(lambda: status_of(af, id)["status"]["state"] == state, what=state, timeout=120)


def test_a_message_to_a_busy_session_comes_when_it_is_done(af: Af, spawn: Spawn, sessions: Path) -> None:
    id = spawn("[[sleep:10]] first")
    wait_until(lambda: heard(sessions), what="the session to work")
    sent = af("send", id, "second")
    assert (sent.returncode, heard(sessions)) == (0, ["[[sleep:10]] first"]), sent.stderr
    wait_until(lambda: heard(sessions) == ["[[sleep:10]] first", "second"], what="the message", timeout=120)
    wait_for(af, id, "idle")


def test_a_resume_after_the_end_waits_for_a_message(af: Af, spawn: Spawn, sessions: Path) -> None:
    id = spawn("first")
    wait_for(af, id, "idle")
    for _ in range(2):
        assert af("stop", id).returncode == 0
        assert json.loads(af("resume", id, "--json").stdout)["continues"] is True
        wait_for(af, id, "idle")
    assert heard(sessions) == ["first"]
    assert af("send", id, "second").returncode == 0
    wait_until(lambda: heard(sessions) == ["first", "second"], what="the message")


def test_a_resume_of_a_turn_that_was_stopped_waits_for_a_message(
    af: Af, spawn: Spawn, sessions: Path
) -> None:
    id = spawn("[[sleep:60]] first")
    wait_until(lambda: heard(sessions), what="the session to work")
    assert af("stop", id).returncode == 0
    assert json.loads(af("resume", id, "--json").stdout)["continues"] is True
    wait_for(af, id, "interrupted")
    assert "did not end well" in af("capture", id).stdout
    assert af("send", id, "go on").returncode == 0
    wait_until(lambda: heard(sessions) == ["[[sleep:60]] first", "go on"], what="the message")
    wait_for(af, id, "idle")
