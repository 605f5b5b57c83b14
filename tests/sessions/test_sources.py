"""Which trigger source a caller may name, and which is found out."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import Af
from tests.server.serving import ARCHITECT, serving
from tests.sessions.loop import in_loop
from tests.sessions.records import open_sessions
from tests.sessions.test_one_at_a_time import start
from tests.waiting import wait_until


def test_trigger_writes_down_the_source_that_it_is_given(farm: Path, af: Af) -> None:
    log = open_sessions(farm)
    for source in ("tick", "route", "external", None):
        words = ("--source", source) if source else ()
        done = af("trigger", "--json", *words, "[[say:x]]")
        session = json.loads(done.stdout)["result"]["session_id"]
        assert log.get(session)["trigger_source"] == (source or "external")
    assert len(json.loads(af("sessions", "--json", "--source", "route").stdout)["sessions"]) == 1
    for source in ("trigger", "schedule:daily", "cron"):
        refused = af("trigger", "--source", source, "x")
        assert (refused.returncode, "--source" in refused.stderr) == (2, True)


@in_loop
async def test_the_server_refuses_a_source_that_is_none_to_name(repo: Path) -> None:
    async with serving(repo) as served:
        headers = {"Authorization": f"Bearer {ARCHITECT}"}
        for source in ("schedule:", "schedule:daily", "trigger", "cron", 5):
            body = {"prompt": "x", "source": source}
            answer = await served.http.post(served.url("/api/trigger"), json=body, headers=headers)
            assert answer.status_code == 400
            assert "source" in json.dumps(answer.json()["error"])
        assert served.sessions.find() == []


def test_a_command_inside_a_session_does_not_wait_for_its_slot(farm: Path, af: Af) -> None:
    """It would wait for itself: the session holds the slot until the command has ended."""
    log = open_sessions(farm)
    outer = start(farm, "run", "--runtime", "demo", "[[sleep:300]]")
    (record,) = wait_until(lambda: log.find(states=["running"]), what="the session")
    inside = {"AF_SESSION": record["id"]}
    done = af("run", "inner", env=inside)
    assert done.returncode == 1
    assert "a session that triggers another cannot wait for one" in done.stderr
    queued = af("trigger", "--no-wait", "[[say:later]]", env=inside).stdout.strip()  # nobody waits for it
    outer.terminate()
    outer.communicate(timeout=60)
    wait_until(lambda: log.get(queued)["state"] == "completed", what="the queued session")
    assert log.get(queued)["parent"] == record["id"]
    over = af("run", "--json", "[[say:x]]", env=inside)  # a session that has ended holds nothing
    session = json.loads(over.stdout)["result"]["session_id"]
    assert (log.get(session)["trigger_source"], log.get(session)["parent"]) == ("external", None)
