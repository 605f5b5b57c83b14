"""Stop, resume, recover, wait, send, ephemeral: what an architect does with builders that run."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.conftest import Spawned, status_of
from tests.farm.traces import traces
from tests.gitrepo import git
from tests.waiting import wait_until

Spawn = Callable[..., Spawned]


def processes(builder: Spawned) -> dict[str, int]:
    file = builder.repo / ".agent-farm/runs" / builder.id / "processes.json"
    found: dict[str, int] = json.loads(file.read_text())
    return found


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"


def screen(builder: Spawned) -> str:
    return builder.af("capture", builder.id, "--history", "2000").stdout


def test_stop_ends_every_process_and_keeps_the_work(spawn: Spawn) -> None:
    builder = spawn()
    pids = processes(builder)
    tip = builder.tip
    builder.stop()
    assert builder.state == "stopped"
    assert not is_alive(pids["launcher"])
    assert not is_alive(pids["runtime"])
    assert traces(builder.repo).sessions == frozenset()
    assert builder.tip == tip
    assert builder.worktree.is_dir()


def test_stop_ends_what_the_runtime_left_in_the_background(spawn: Spawn) -> None:
    """A server that a tool started in a session of its own is found by its environment."""
    builder = spawn()
    registry = json.loads((builder.repo / ".agent-farm/registry.json").read_text())
    env = {**os.environ, "AF_RUN": registry["builders"][builder.id]["run"]}
    child = subprocess.Popen(["sleep", "600"], env=env, start_new_session=True)
    builder.stop()
    assert child.wait(timeout=120) == -signal.SIGTERM


def test_stop_all_stops_those_that_run(af: Af, spawn: Spawn) -> None:
    one, two = spawn(), spawn()
    assert af("stop", "--all").returncode == 0
    assert (one.state, two.state) == ("stopped", "stopped")
    assert "No builder is running" in af("stop", "--all").stderr


def test_resume_goes_on_with_the_conversation_and_the_role(spawn: Spawn, af: Af) -> None:
    builder = spawn()
    role = next(line for line in screen(builder).splitlines() if line.startswith("role:"))
    builder.stop()
    assert af("resume", builder.id).returncode == 0
    assert af("wait", builder.id, "--timeout", "300").returncode == 0
    assert "resumed conversation" in screen(builder)
    assert role in screen(builder)


def test_resume_of_a_running_builder_is_refused(spawn: Spawn, af: Af) -> None:
    builder = spawn()
    done = af("resume", builder.id)
    assert done.returncode == 2
    assert f"af attach {builder.id}" in done.stderr


def test_a_killed_session_is_lost_and_recover_brings_it_back(spawn: Spawn, af: Af) -> None:
    lost, stopped, ended = spawn(), spawn().stop(), spawn()
    af("send", ended.id, "[[exit:0]]")
    wait_until(lambda: ended.state == "exited", what="the runtime to end")
    subprocess.run(["tmux", "kill-server"], check=True)
    wait_until(lambda: lost.state == "lost", what="the loss to be seen")
    assert ended.state == "exited"

    plan = af("recover")
    assert plan.returncode == 2
    assert lost.id in plan.stderr
    assert lost.state == "lost"

    done = af("recover", "--yes")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [lost.id, "resumed"]
    wait_until(lambda: lost.state == "idle", what="the builder to be back")
    assert (stopped.state, ended.state) == ("stopped", "exited")


def test_a_runtime_that_fails_says_so(spawn: Spawn, af: Af) -> None:
    builder = spawn()
    os.kill(processes(builder)["runtime"], signal.SIGKILL)
    wait_until(lambda: builder.state == "failed", what="the failure to be seen")
    status = status_of(af, builder.id)["status"]
    assert status["source"] == "launcher"
    assert "SIGKILL" in status["reason"]
    waited = af("wait", builder.id)
    assert waited.returncode == 1
    assert builder.id in waited.stderr


def test_wait_ends_for_one_of_many(spawn: Spawn, af: Af) -> None:
    working = af("spawn", "[[sleep:60]]", "--runtime", "demo").stdout.strip()
    idle = spawn()
    done = af("wait", working, idle.id, "--any", "--timeout", "300")
    assert done.returncode == 0
    late = af("wait", working, "--timeout", "0.3")
    assert late.returncode == 124
    assert f"{working}: working" in late.stderr


def test_wait_refuses_a_state_that_is_none(spawn: Spawn, af: Af) -> None:
    assert af("wait", spawn().id, "--for", "happy").returncode == 2


def test_send_arrives_byte_for_byte_at_several_builders(spawn: Spawn, af: Af) -> None:
    one, two = spawn(), spawn()
    text = "line one\n$(touch x) `id` \"'\\ #{pane_id} ; é 🎉\tend"
    done = af("send", one.id, two.id, "-", input=text)
    assert done.returncode == 0, done.stdout
    # each is told when it is there
    assert sorted(done.stdout.splitlines()) == sorted([f"{one.id} submitted", f"{two.id} submitted"])
    digest = hashlib.sha256(text.encode()).hexdigest()
    for builder in (one, two):
        wait_until(lambda builder=builder: digest in screen(builder), what="the message's hash")  # type: ignore[misc]
    assert not list(one.repo.rglob("x"))


def test_a_word_of_the_runtime_s_own_arrives_as_text(spawn: Spawn, af: Af) -> None:
    """/exit ends the demo agent when a person types it."""
    builder = spawn()
    assert af("send", builder.id, "/exit").returncode == 0
    digest = hashlib.sha256(b"Message:\n/exit").hexdigest()
    wait_until(lambda: digest in screen(builder), what="the message's hash", timeout=60)
    wait_until(lambda: builder.state == "idle", what="the end of the turn, and not of the agent")


def test_send_of_100_kb(spawn: Spawn, af: Af) -> None:
    builder = spawn()
    text = "".join(f"{number:06d} some words of a long message\n" for number in range(3000)).strip()
    assert len(text) > 100_000
    assert af("send", builder.id, "-", input=text).returncode == 0
    digest = hashlib.sha256(text.encode()).hexdigest()
    wait_until(lambda: digest in screen(builder), what="the message's hash")


def test_send_holds_back_from_an_ended_runtime_and_from_a_dialog(spawn: Spawn, af: Af) -> None:
    ended, asking = spawn(), spawn("[[ask:May I?]]")
    af("send", ended.id, "[[exit:0]]")
    wait_until(lambda: ended.state == "exited", what="the runtime to end")
    before = screen(ended)
    held = af("send", ended.id, "rm -rf /tmp/never")
    assert held.returncode == 5
    assert "held" in held.stdout
    assert screen(ended) == before

    assert asking.state == "waiting"
    held = af("send", asking.id, "yes")
    assert held.returncode == 5
    assert "dialog" in held.stdout


@pytest.mark.parametrize(("keys", "answer"), [("Enter", "allowed"), ("1", "allowed"), ("2", "refused")])
def test_a_dialog_is_answered_with_keys(spawn: Spawn, af: Af, keys: str, answer: str) -> None:
    asking = spawn("[[ask:May I?]]")
    held = af("send", asking.id, "yes")
    assert held.stderr == f"hint: af attach {asking.id}\nhint: af send {asking.id} --keys Enter\n"

    done = af("send", asking.id, "--keys", keys)

    assert (done.returncode, done.stdout) == (0, f"{asking.id} pressed: {keys}\n")
    wait_until(lambda: f"{answer}: May I?" in screen(asking), what=answer)
    assert f"keys: pressed: {keys}\n" in af("logs", asking.id).stdout


def test_keys_are_not_pressed_where_no_runtime_reads_them(spawn: Spawn, af: Af) -> None:
    builder = spawn("--shell")
    for words in (("--keys", "enter"), ("--keys", ""), ("--keys", "Enter", "--json")):
        done = af("send", builder.id, *words)
        assert done.returncode == (0 if "--json" in words else 2)
    document = json.loads(done.stdout)
    assert document["deliveries"] == [
        {"id": builder.id, "outcome": "pressed", "reason": "Enter", "source": None, "hints": []}
    ]
    af("send", builder.id, "[[exit:0]]")
    wait_until(lambda: builder.state == "exited", what="the end")
    done = af("send", builder.id, "--keys", "y")
    assert (done.returncode, done.stdout) == (5, f"{builder.id} held: its runtime has ended (exited)\n")
    assert af("send", builder.id, "hello").stderr == f"hint: af resume {builder.id}\n"


def test_send_refuses_control_characters(spawn: Spawn, af: Af) -> None:
    builder = spawn()
    before = screen(builder)
    done = af("send", builder.id, "a\x1b[201~\nrm -rf /")
    assert done.returncode == 2
    assert "control character" in done.stderr
    assert screen(builder) == before


def test_an_ephemeral_builder_leaves_when_its_work_has_landed(af: Af, repo: Path) -> None:
    id = af("spawn", "--shell", "--ephemeral", "--runtime", "demo").stdout.strip()
    af("wait", id, "--timeout", "300")
    af("send", id, "[[exit:0]]")
    wait_until(lambda: id not in traces(repo).records, what="the builder to leave")
    found = traces(repo)
    wait_until(lambda: traces(repo).sessions == frozenset(), what="its session to end")
    assert found.worktrees == frozenset()
    assert git(repo, "branch", "--list", "builder/*") == ""


def test_an_ephemeral_builder_stays_when_its_work_has_not_landed(spawn: Spawn, af: Af, repo: Path) -> None:
    builder = spawn("work", "--ephemeral")
    af("send", builder.id, "[[exit:0]]")
    wait_until(lambda: builder.state == "exited", what="the runtime to end")
    assert builder.id in traces(repo).records
    assert builder.worktree.is_dir()


def test_logs_and_path(spawn: Spawn, af: Af) -> None:
    builder = spawn()
    assert af("path", builder.id).stdout.strip() == str(builder.worktree)
    logs = af("logs", builder.id).stdout
    assert "preparing" in logs
    assert "idle" in logs
    events = json.loads(af("logs", builder.id, "--json").stdout)["events"]
    assert [event["state"] for event in events if event["state"]][-1] == "idle"


def test_builders_of_another_tmux_server_are_found_from_every_terminal(af: Af, repo: Path) -> None:
    """Spawned under `tmux -L work`, looked at from outside of it: neither lost nor started twice."""
    done = af("spawn", "--shell", "--runtime", "demo", env={"AF_TMUX_SOCKET": "work"})
    id = done.stdout.strip()
    assert af("wait", id, "--timeout", "300").returncode == 0
    assert "No builder is lost" in af("recover", "--yes").stderr
    assert af("send", id, "hello").returncode == 0
    assert "bytes 5" in af("capture", id).stdout
    assert af("stop", id).returncode == 0
    sessions = subprocess.run(["tmux", "-L", "work", "ls"], capture_output=True, text=True, check=False)
    assert id not in sessions.stdout


def test_resume_of_a_builder_to_which_nothing_was_said_starts_anew(spawn: Spawn, af: Af) -> None:
    builder = spawn("--shell").stop()
    done = af("resume", builder.id, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["continues"] is False
    wait_until(lambda: builder.state == "idle", what="the builder to be back")


@pytest.mark.slow
def test_an_interruption_that_no_hook_tells_is_seen_on_the_screen(af: Af) -> None:
    id = af("spawn", "[[sleep:600]]", "--runtime", "demo").stdout.strip()
    wait_until(lambda: status_of(af, id)["status"]["source"] == "hook", what="the turn to run")
    assert af("wait", id, "--for", "idle", "--timeout", "6").returncode == 124  # it works, and says nothing
    (pane,) = subprocess.run(
        ["tmux", "list-panes", "-a", "-F", "#{pane_id}"], capture_output=True, text=True, check=True
    ).stdout.split()
    subprocess.run(["tmux", "send-keys", "-t", pane, "Escape"], check=True)

    def told() -> tuple[str, str]:
        status = status_of(af, id)["status"]
        return status["state"], status["source"]

    wait_until(lambda: told() == ("idle", "screen"), what="the screen to correct the state")


@pytest.mark.slow
def test_what_af_did_is_on_record_and_gives_a_stopped_builder_its_age(spawn: Spawn, af: Af) -> None:
    builder = spawn("[[nocommit]]")
    wait_until(lambda: builder.state == "idle", what="the turn to end")
    before = time.time()
    assert af("send", builder.id, "hello").returncode == 0
    assert af("stop", builder.id).returncode == 0
    assert before <= float(status_of(af, builder.id)["status"]["at"]) <= time.time()
    told = [line.split("  ", 1)[1] for line in af("logs", builder.id).stdout.splitlines()]
    done = [line.split(maxsplit=1) for line in told if line.startswith("af ")]
    assert done == [["af", "sent: submitted, 5 bytes"], ["af", "stopped"]]
