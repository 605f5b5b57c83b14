"""What `af run`, `trigger` and `schedule` say of a session's end, by exit code, text and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Af


@pytest.fixture
def serverless(af: Af) -> Iterator[Af]:
    """The server that a test started ends with it."""
    yield af
    af("butler", "stop", "--now")


def last_session(af: Af) -> dict[str, Any]:
    newest = json.loads(af("sessions", "--json").stdout)["sessions"][0]
    return dict(json.loads(af("sessions", newest["id"], "--json").stdout)["session"])


def test_a_session_that_ran_out_of_time_exits_with_124(repo: Path, af: Af) -> None:
    done = af("run", "--runtime", "demo", "--timeout", "1", "[[sleep:30]]")
    assert done.returncode == 124, done.stderr
    assert "timed out" in done.stderr
    assert last_session(af)["failure"] == "time-limit"
    done = af("run", "--runtime", "demo", "--timeout", "1", "[[sleep:30]]", "--json")
    assert done.returncode == 124
    result = json.loads(done.stdout)["result"]
    assert (result["success"], result["failure"]) == (False, "time-limit")


def test_through_the_server_too(repo: Path, serverless: Af) -> None:
    words = ("trigger", "--runtime", "demo", "--timeout", "1", "[[sleep:30]]")
    assert serverless(*words).returncode == 124
    assert serverless(*words, "--json").returncode == 124


def test_the_kind_of_a_failure_is_kept(repo: Path, af: Af) -> None:
    done = af("run", "--runtime", "demo", "[[error:overloaded]]", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["result"]["failure"] == "api-error"
    kept = last_session(af)
    assert (kept["failure"], kept["state"]) == ("api-error", "failed")
    assert "api-error" in af("sessions", kept["id"]).stdout
    done = af("run", "--runtime", "demo", "--max-turns", "1", "[[turns:3]]", "--json")
    assert json.loads(done.stdout)["result"]["failure"] == "turn-limit"
    done = af("run", "--runtime", "demo", "[[say:x]]", "--json")
    assert json.loads(done.stdout)["result"]["failure"] is None
    assert last_session(af)["failure"] is None


def test_an_unknown_runtime_says_which_is_meant_and_which_there_are(repo: Path, af: Af) -> None:
    done = af("run", "--runtime", "codx", "hello")
    assert done.returncode == 2
    assert "Did you mean codex? There are: " in done.stderr
    assert "gemini" in done.stderr


def test_a_schedule_that_was_never_due(repo: Path, af: Af) -> None:
    af("schedule", "add", "daily", "0 8 * * *", "[[say:digest]]")
    done = af("schedule", "history", "daily")
    assert (done.returncode, done.stdout) == (0, "")
    assert "daily was never due; next " in done.stderr
    af("schedule", "disable", "daily")
    assert "it is disabled" in af("schedule", "history", "daily").stderr
    assert json.loads(af("schedule", "history", "daily", "--json").stdout)["fires"] == []


def test_a_schedule_runs_when_it_is_told_to(repo: Path, serverless: Af) -> None:
    af = serverless
    (repo / "agent-farm.toml").write_text('[spawn]\nruntime = "demo"\n')
    af("schedule", "add", "daily", "0 8 * * *", "[[say:digest]]")
    done = af("schedule", "run", "daily")
    assert (done.returncode, done.stdout.strip()) == (0, "digest"), done.stderr
    assert last_session(af)["trigger_source"] == "schedule:daily"
    done = af("schedule", "run", "daily", "--no-wait", "--json")
    assert json.loads(done.stdout)["session_id"]
    assert json.loads(af("schedule", "history", "daily", "--json").stdout)["fires"] == []
    missing = af("schedule", "run", "dayly")
    assert missing.returncode == 1
    assert "Did you mean daily?" in missing.stderr
