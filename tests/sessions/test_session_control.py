"""A session that runs is followed and stopped, one that has ended goes on; records are not kept for ever."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from agent_farm.errors import NotFound
from agent_farm.server.stopping import stop_server
from tests.conftest import Af
from tests.foundation.test_clock_jumps import YEAR, last_look
from tests.gitrepo import commit_files
from tests.sessions.records import Records, open_sessions
from tests.waiting import wait_until

LONG = 120.0


@pytest.fixture
def log(repo: Path) -> Iterator[Records]:
    commit_files(repo, {"agent-farm.toml": '[spawn]\nruntime = "demo"\n', "codev/todo.md": "TODO one\n"})
    yield open_sessions(repo)
    stop_server(repo, now=True)


def running(log: Records, calls: int = 0) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        found = log.find(states=("running",))
        record = log.get(found[0]["id"]) if found else None
        return record if record and len(record["tool_calls"] or []) >= calls else None

    record = wait_until(look, timeout=LONG, what=f"a running session with {calls} calls")
    assert record is not None
    return record


def started(repo: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "agent_farm", *words],
        cwd=repo,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("alone", [True, False])
def test_stopping_ends_every_process_of_a_session(repo: Path, af: Af, log: Records, alone: bool) -> None:
    prompt = "[[child:600]] [[sleep:600]]"
    run = started(repo, "run", prompt) if alone else None
    if run is None:
        assert af("trigger", "--no-wait", prompt).returncode == 0
    record = running(log, calls=2)
    children = [psutil.Process(int(call["result"])) for call in record["tool_calls"]]
    stopped = af("sessions", "stop", record["id"][:8], timeout=LONG)
    assert stopped.returncode == 0, stopped.stderr
    after = log.get(record["id"])
    assert (after["state"], after["error"]) == ("cancelled", "Cancelled: stopped by the architect")
    assert len(after["tool_calls"]) == 2
    psutil.wait_procs(children, timeout=LONG)
    assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)
    if run is not None:
        assert "stopped by" in run.communicate(timeout=LONG)[1]
        assert run.returncode == 1
    again = af("sessions", "stop", record["id"])
    assert (again.returncode, "has ended already" in again.stderr) == (2, True)


def test_one_that_waits_is_stopped_as_well_and_each_id_has_its_answer(
    repo: Path, af: Af, log: Records
) -> None:
    assert af("trigger", "--no-wait", "[[sleep:600]]").returncode == 0
    waiting = af("trigger", "--no-wait", "waits").stdout.strip()
    first = running(log)["id"]
    done = af("sessions", "stop", waiting, "nobody", first, "--json", timeout=LONG)
    document = json.loads(done.stdout)
    assert [one["id"] for one in document["stopped"]] == [waiting, first]
    assert [one["what"] for one in document["failed"]] == ["No session nobody"]
    assert done.returncode == NotFound.exit_code
    assert log.get(waiting)["started_at"] is None


def test_following_tells_calls_as_they_are_made_and_the_answer_at_last(
    repo: Path, af: Af, log: Records
) -> None:
    flag = repo / ".agent-farm" / "butler" / "flag.txt"
    af("trigger", "--no-wait", "[[write:flag.txt]] [[sleep:1]] [[say:the answer]]")
    record = wait_until(lambda: log.find(limit=1), timeout=LONG, what="the session")[0]
    followed = af("sessions", "--follow", record["id"][:8], timeout=LONG)
    assert followed.stdout == "the answer\n"
    assert f"session {record['id']} completed" in followed.stderr
    assert str(flag) in followed.stderr
    failed = json.loads(af("run", "--json", "[[error:overloaded]]").stdout)["result"]
    again = af("sessions", "-f", failed["session_id"])
    assert (again.returncode, "overloaded" in again.stderr) == (1, True)
    assert af("sessions", "--follow").returncode == 2


def test_a_conversation_goes_on(repo: Path, af: Af, log: Records) -> None:
    first = json.loads(af("run", "--json", "one").stdout)["result"]
    second = json.loads(af("run", "--json", "--resume", first["session_id"][:8], "two").stdout)["result"]
    assert "message 2" in second["output"]
    record = log.get(second["session_id"])
    assert (record["resumes"], record["conversation_id"]) == (first["session_id"], first["conversation_id"])
    third = json.loads(af("trigger", "--json", "--resume", second["session_id"], "three").stdout)["result"]
    assert "message 3" in third["output"]
    refused = af("run", "--resume", first["session_id"], "--runtime", "codex", "x")
    assert (refused.returncode, "ran on demo, not on codex" in refused.stderr) == (2, True)
    elsewhere = af("run", "--resume", first["session_id"], "--cwd", ".", "x")
    assert (elsewhere.returncode, "leave out --cwd" in elsewhere.stderr) == (2, True)
    assert af("run", "--resume", "nobody", "x").returncode != 0


def test_old_records_go_with_their_conversations(repo: Path, af: Af, log: Records) -> None:
    conversations = repo / ".agent-farm" / "conversations"
    kept = json.loads(af("run", "--json", "one").stdout)["result"]["session_id"]
    gone = json.loads(af("run", "--json", "two").stdout)["result"]["session_id"]
    newest = json.loads(af("run", "--json", "--resume", kept, "three").stdout)["result"]["session_id"]
    assert af("sessions", "prune").stdout == "0 sessions removed\n"
    assert af("sessions", "prune", "--keep", "1", "--dry-run").stdout == "2 sessions would be removed\n"
    assert len(log.find()) == 3
    assert set(json.loads(af("sessions", "prune", "--keep", "1", "--json").stdout)["removed"]) == {kept, gone}
    assert [record["id"] for record in log.find()] == [newest]
    assert [place.name for place in conversations.iterdir()] == [kept]  # the newest goes on with it
    assert "message 3" in af("run", "--resume", newest, "four").stdout
    last_look(repo, YEAR)
    refused = af("sessions", "prune", "--older-than", "1s")
    assert (refused.returncode, "the clock may be wrong" in refused.stderr) == (1, True)
    af("config", "set", "sessions.keep_number", "1")
    assert af("sessions", "prune").stdout == "1 session removed\n"


@pytest.mark.slow
def test_the_server_deletes_nothing_by_a_clock_that_jumped(repo: Path, af: Af, log: Records) -> None:
    assert af("run", "one").returncode == 0
    stop_server(repo, now=True)
    with log.log.database.transaction() as connection:
        connection.execute("UPDATE sessions SET ended_at = 1")
    last_look(repo, YEAR)
    assert af("run", "two").returncode == 0
    told = repo / ".agent-farm/butler.log"
    wait_until(lambda: "the clock may be wrong" in told.read_text(), what="a word about it")
    assert len(log.find()) == 2
    stop_server(repo, now=True)
    last_look(repo, 0)
    assert af("run", "three").returncode == 0
    wait_until(lambda: len(log.find()) == 2, what="the old record to go")


def test_the_examples_see_the_checkout_and_change_nothing_of_it(repo: Path, af: Af, log: Records) -> None:
    own = repo / ".agent-farm" / "butler"
    seen = af("run", "[[read:../../codev/todo.md]]", cwd=repo / "codev")
    assert (seen.returncode, seen.stdout) == (0, "TODO one\n")
    linked = repo.parent / "linked"
    subprocess.run(["git", "worktree", "add", "-q", str(linked)], cwd=repo, check=True)
    (linked / "codev" / "todo.md").write_text("TODO two\n")
    there = af("run", f"[[read:{linked}/codev/todo.md]]", cwd=linked)
    assert (there.returncode, there.stdout) == (0, "TODO two\n")
    for secret in (
        repo / ".agent-farm" / "butler.db",
        repo / ".git" / "config",
        repo.parent / "home/.gitconfig",
    ):
        blind = af("run", f"[[read:{secret}]]")
        assert blind.returncode == 1, secret
        assert "denied everything" in blind.stderr
    assert af("run", "[[write:../../codev/new.md]] [[write:ok.txt]]").returncode == 0
    assert not (repo / "codev" / "new.md").exists()
    assert (own / "ok.txt").exists()


def test_a_session_leaves_what_its_butler_may_do_as_it_is(repo: Path, af: Af, log: Records) -> None:
    home = "codev/roster/health"
    files = {f"{home}/CLAUDE.md": "Be kind.", f"{home}/butler.toml": '[butler]\nruntime = "demo"\n'}
    commit_files(repo, {**files, f"{home}/skills/a.sh": "#!/bin/sh\n", "codev/roster/shared/N.md": "n"})
    before = subprocess.run(
        ["git", "status", "--porcelain"], cwd=repo, capture_output=True, check=True
    ).stdout
    names = ("butler.toml", "CLAUDE.md", "skills/a.sh", "skills/new.sh", "../shared/N.md")
    af("run", " ".join(f"[[write:{name}]]" for name in names))
    af("run", "--cwd", ".", " ".join(f"[[write:{home}/{name}]]" for name in names))
    after = subprocess.run(["git", "status", "--porcelain"], cwd=repo, capture_output=True, check=True).stdout
    assert after == before


def test_several_butlers_are_listed_with_their_schedules(repo: Path, af: Af, log: Records) -> None:
    toml = '[butler]\nruntime = "demo"\n[[butler.schedule]]\nname = "s"\ncron = "0 8 * * *"\nprompt = "{}"\n'
    names = ("health", "mail")
    commit_files(repo, {f"codev/roster/{name}/butler.toml": toml.format(name) for name in names})
    assert af("schedule", "add", "mine", "0 9 * * *", "x").returncode == 0
    listed = json.loads(af("schedule", "list", "--json").stdout)["schedules"]
    assert [(one["name"], one["prompt"]) for one in listed] == [("mine", "x"), ("s", "health"), ("s", "mail")]
    assert {one["butler"] for one in listed} >= set(names)
    assert [
        one["prompt"]
        for one in json.loads(af("schedule", "list", "--butler", "mail", "--json").stdout)["schedules"]
    ] == ["mail"]
    assert af("butler", "status").returncode == 1
    assert af("trigger", "--no-wait", "--butler", "mail", "[[sleep:600]]", timeout=LONG).returncode == 0
    running(log)
    status = af("butler", "status")
    assert (status.returncode, "mail" in status.stdout) == (0, True)
    butlers = json.loads(af("butler", "status", "--json").stdout)["butlers"]
    assert [(one["butler"], one["sessions"]) for one in butlers][1:] == [("health", 0), ("mail", 1)]
