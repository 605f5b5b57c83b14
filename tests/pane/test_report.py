"""A hook's report is one event, quick, silent, and never the runtime's problem."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from agent_farm.pane.journal import digest_of_prompt
from agent_farm.pane.pane_argv import report_argv
from agent_farm.runtimes.cli import Cli, Hooks
from tests.pane.stage import Stage, notice
from tests.waiting import wait_until

RUN = "abcdef012345"
STATES = {
    "UserPromptSubmit": "working",
    "PermissionRequest": "waiting",
    "Notification:permission_prompt": "waiting",
    "Stop": "idle",
    "SessionStart:resume": "idle",
}
HOOKS = Cli(
    "some",
    hooks=Hooks(STATES, submitted="UserPromptSubmit", kind=("notification_type", "source")),
).hooks_to_json(prompted=True)


def report(
    stage: Stage,
    event: str = "-",
    payload: object = None,
    *,
    raw: bytes | None = None,
    json_reply: bool = False,
    run: str = RUN,
) -> str:
    done = subprocess.run(
        report_argv(stage.run, run, event, json_reply=json_reply),
        input=raw if raw is not None else json.dumps(payload or {}).encode(),
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    stage.write_launch(hooks=HOOKS)
    return stage


def last(stage: Stage) -> dict[str, Any]:
    return stage.events()[-1]


def test_an_event_has_its_state_source_and_time(stage: Stage) -> None:
    payload = {"hook_event_name": "UserPromptSubmit", "session_id": "c-1", "prompt": "x"}
    assert report(stage, payload=payload) == ""
    event = last(stage)
    assert event.pop("at") == pytest.approx(time.time(), abs=30)
    assert event == {
        "run": RUN,
        "source": "hook",
        "event": "UserPromptSubmit",
        "state": "working",
        "reason": None,
        "conversation_id": "c-1",
        "detail": {"said": digest_of_prompt("x")},
    }


@pytest.mark.parametrize(
    ("event", "payload", "state", "reason"),
    [
        ("Stop", {}, "idle", None),
        ("-", {"hook_event_name": "Stop"}, "idle", None),
        ("-", {}, None, None),
        (
            "Notification",
            {"notification_type": "permission_prompt", "message": "May I?"},
            "waiting",
            "May I?",
        ),
        ("Notification", {"notification_type": "idle_prompt", "message": "x"}, None, None),
        ("SessionStart", {"source": "resume"}, "idle", None),
        ("SessionStart", {"source": "compact"}, None, None),
        ("PermissionRequest", {"tool_name": "Bash"}, "waiting", "Bash"),
        ("PermissionRequest", {"message": "a\x1b[31m\nb " + "c" * 999}, "waiting", "a [31m b " + "c" * 291),
        ("Stop", {"session_id": 7, "message": None}, "idle", None),
    ],
)
def test_states_and_reasons(
    stage: Stage, event: str, payload: dict[str, object], state: str | None, reason: str | None
) -> None:
    report(stage, event, payload)
    assert (last(stage)["state"], last(stage)["reason"]) == (state, reason)


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b"\xff\x00", b'"text"'])
def test_a_payload_of_any_kind_is_an_event(stage: Stage, raw: bytes) -> None:
    report(stage, "Stop", raw=raw)
    assert last(stage)["state"] == "idle"


def test_a_payload_of_megabytes_is_taken(stage: Stage) -> None:
    report(stage, "Stop", {"session_id": "c", "prompt": "x" * 5_000_000})
    assert last(stage)["conversation_id"] == "c"
    assert len((stage.run / "events.jsonl").read_bytes()) < 1000


def test_a_pipe_that_stays_open_does_not_hold_the_runtime_up(stage: Stage) -> None:
    read, write = os.pipe()
    begin = time.monotonic()
    done = subprocess.run(report_argv(stage.run, RUN, "Stop"), stdin=read, check=False, timeout=120)
    os.close(read)
    os.close(write)
    assert done.returncode == 0
    assert time.monotonic() - begin < 60
    assert last(stage)["state"] == "idle"


def test_a_reply_only_where_it_is_asked_for(stage: Stage) -> None:
    assert json.loads(report(stage, "Stop", json_reply=True)) == {}
    (stage.run / "launch.json").unlink()
    assert json.loads(report(stage, "Stop", json_reply=True)) == {}


@pytest.mark.parametrize("trouble", ["no directory", "no launch", "damaged", "not writable", "no words"])
def test_trouble_is_never_the_runtimes(stage: Stage, trouble: str) -> None:
    if trouble == "no directory":
        subprocess.run(["rm", "-r", str(stage.run)], check=True)
    elif trouble == "no launch":
        (stage.run / "launch.json").unlink()
    elif trouble == "damaged":
        (stage.run / "launch.json").write_text("{")
    elif trouble == "not writable":
        (stage.run / "events.jsonl").mkdir()
    if trouble == "no words":
        argv = report_argv(stage.run, RUN)[:-3]
        assert subprocess.run(argv, check=False, stdin=subprocess.DEVNULL).returncode == 0
    else:
        assert report(stage, "Stop") == ""


def test_a_person_is_told_once_per_wait(stage: Stage) -> None:
    told = stage.root / "told"
    script = 'echo "$AF_BUILDER_ID $AF_STATE $AF_REASON $AF_EVENT" >>"$1"'
    stage.write_launch(hooks=HOOKS, notify=notice("/bin/sh", "-c", script, "sh", str(told)))

    def lines() -> list[str]:
        return told.read_text().splitlines() if told.exists() else []

    report(stage, "UserPromptSubmit")
    report(stage, "PermissionRequest", {"tool_name": "Bash"})
    wait_until(lambda: len(lines()) == 1, what="the word")
    report(stage, "Notification", {"notification_type": "permission_prompt", "message": "still"})
    report(stage, "Unknown")
    report(stage, "Notification", {"notification_type": "permission_prompt"})
    report(stage, "UserPromptSubmit")
    report(stage, "PermissionRequest", {"message": "again; $(touch x)"})
    wait_until(lambda: len(lines()) == 2, what="the second word")
    assert lines() == [
        "task-1 waiting Bash PermissionRequest",
        "task-1 waiting again; $(touch x) PermissionRequest",
    ]
    report(stage, "PermissionRequest", run="another-run-1")
    wait_until(lambda: len(lines()) == 3, what="the word about another run")


def test_a_person_is_told_of_the_states_they_chose(stage: Stage) -> None:
    told = stage.root / "told"
    command = ("/bin/sh", "-c", f'echo "$AF_STATE" >>{told}; echo trouble >&2')
    stage.write_launch(hooks=HOOKS, notify=notice(*command, on=("idle",)))
    report(stage, "UserPromptSubmit")
    report(stage, "PermissionRequest", {"tool_name": "Bash"})
    report(stage, "Stop")
    report(stage, "Stop")
    wait_until(lambda: told.exists() and told.read_text(), what="the word")
    wait_until(lambda: (stage.run / "notify.log").read_text() == "trouble\n", what="what it said")
    assert told.read_text() == "idle\n"


def test_a_person_is_told_once_by_many_at_once(stage: Stage) -> None:
    told = stage.root / "told"
    stage.write_launch(hooks=HOOKS, notify=notice("/bin/sh", "-c", 'echo x >>"$1"', "sh", str(told)))
    threads = [threading.Thread(target=report, args=(stage, "PermissionRequest")) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report(stage, "UserPromptSubmit")
    report(stage, "PermissionRequest")
    wait_until(lambda: told.exists() and told.read_text() == "x\nx\n", what="two words")


def test_reports_wait_for_each_other(stage: Stage) -> None:
    with open(stage.run / "events.jsonl", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        process = subprocess.Popen(report_argv(stage.run, RUN, "Stop"), stdin=subprocess.DEVNULL)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.7)
        assert stage.events() == []
    assert process.wait(timeout=120) == 0
    assert last(stage)["event"] == "Stop"


def test_a_notifier_does_not_hold_the_hook_up(stage: Stage) -> None:
    pid = stage.root / "pid"
    program = f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600"
    stage.write_launch(hooks=HOOKS, notify=notice("/bin/sh", "-c", program))
    report(stage, "PermissionRequest")
    wait_until(pid.exists, what="the notifier")
    os.kill(int(pid.read_text()), signal.SIGKILL)  # it goes on, and the hook has ended
    stage.write_launch(hooks=HOOKS, notify=notice("/no/such/notifier"))
    report(stage, "UserPromptSubmit")
    report(stage, "PermissionRequest")


def test_many_at_once_lose_nothing(stage: Stage) -> None:
    threads = [
        threading.Thread(target=report, args=(stage, f"Event{number}", {"message": "x" * 2000}))
        for number in range(40)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {event["event"] for event in stage.events()} == {f"Event{number}" for number in range(40)}


def test_a_sub_agent_does_not_make_an_ended_turn_run_again(stage: Stage) -> None:
    of_sub_agent = {"agent_id": "a1", "hook_event_name": "UserPromptSubmit"}
    report(stage, "Stop")
    report(stage, "-", of_sub_agent)
    assert last(stage)["state"] is None
    report(stage, "PermissionRequest", {"agent_id": "a1"})
    assert last(stage)["state"] == "waiting"
    report(stage, "-", of_sub_agent)  # what it asked for was allowed
    assert last(stage)["state"] == "working"
