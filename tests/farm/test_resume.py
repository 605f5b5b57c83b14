"""Resuming: after a setup that failed, with settings that changed, and two at once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.conftest import Af
from tests.farm.conftest import Spawned, status_of
from tests.farm.traces import all_sessions
from tests.gitrepo import git, write_files
from tests.waiting import wait_until

Spawn = Callable[..., Spawned]


def state(af: Af, id: str) -> str:
    return status_of(af, id)["status"]["state"]


def test_after_a_setup_that_failed_it_starts_with_the_whole_prompt(af: Af, repo: Path) -> None:
    af("config", "set", "worktree.setup", "test -e ../../ready")
    id = af("spawn", "Write something", "--runtime", "demo", "--yes").stdout.strip()
    wait_until(lambda: state(af, id) == "failed", what="the setup to fail")
    (repo / "ready").touch()
    done = af("resume", id)
    assert done.returncode == 0, done.stderr
    assert "starts again" in done.stderr
    wait_until(lambda: state(af, id) == "idle", what="the runtime to have worked")
    assert len(git(repo, "rev-list", f"main..builder/{id}").split()) == 1


def test_a_command_that_changed_since_the_spawn_is_asked_about(af: Af, repo: Path, spawn: Spawn) -> None:
    builder = spawn().stop()
    write_files(repo, {"agent-farm.toml": '[notify]\ncommand = "touch should-not-exist"\n'})
    for command in (("resume", builder.id), ("resume", builder.id, "--json")):
        refused = af(*command)
        assert refused.returncode == 1
        assert "touch should-not-exist" in refused.stdout + refused.stderr
    assert f"hint: af resume --yes {builder.id}" in af("resume", builder.id).stderr
    assert builder.state == "stopped"
    assert af("resume", "--yes", builder.id).returncode == 0
    builder.stop()
    assert af("resume", builder.id).returncode == 0


def test_a_prompt_that_is_no_text_is_named(af: Af, repo: Path) -> None:
    af("config", "set", "worktree.setup", "false")
    id = af("spawn", "Write something", "--runtime", "demo", "--yes").stdout.strip()
    wait_until(lambda: state(af, id) == "failed", what="the setup to fail")
    prompt = repo / f".agent-farm/runs/{id}/prompt.md"
    prompt.write_bytes(b"\xff")
    done = af("resume", id)
    assert (done.returncode, f"{prompt} is damaged" in done.stderr) == (1, True), done.stderr


def test_what_somebody_runs_beside_it_is_not_ended(af: Af, spawn: Spawn) -> None:
    """In another pane of its session; shells that wait do not count."""
    builder = spawn()
    session = f"={status_of(af, builder.id)['session']}:"
    af("send", builder.id, "[[exit:0]]")
    wait_until(lambda: builder.state == "exited", what="the runtime to end")
    subprocess.run(["tmux", "split-window", "-d", "-t", session], check=True)
    subprocess.run(["tmux", "new-window", "-d", "-t", session, "sleep", "600"], check=True)
    refused = af("resume", builder.id)
    assert f"sleep is running in the session of {builder.id}" in refused.stderr
    assert "sleep runs in its session" in af("prune", builder.id).stderr
    subprocess.run(["tmux", "kill-window", "-t", f"{session}1"], check=True)
    assert af("resume", builder.id).returncode == 0


def test_typed_in_the_shell_that_it_would_close_it_says_so(af: Af, spawn: Spawn) -> None:
    builder = spawn()
    session = f"={status_of(af, builder.id)['session']}:"
    af("send", builder.id, "[[exit:0]]")
    wait_until(lambda: builder.state == "exited", what="the runtime to end")
    assert f"continue, from another terminal: af resume {builder.id}" in af("capture", builder.id).stdout
    typed = f"{sys.executable} -m agent_farm resume {builder.id}"
    subprocess.run(["tmux", "send-keys", "-t", session, typed, "Enter"], check=True)
    said = f"this af is running in the session of {builder.id}"
    wait_until(lambda: said in af("capture", builder.id).stdout.replace("\n", " "), what=said)


def test_two_at_once_start_it_once(af: Af, spawn: Spawn) -> None:
    """Also of a builder that ended by itself, whose shell is there still."""
    builder = spawn()
    af("send", builder.id, "[[exit:0]]")
    wait_until(lambda: builder.state == "exited", what="the runtime to end")
    with ThreadPoolExecutor(4) as threads:
        codes = sorted(done.returncode for done in threads.map(lambda _: af("resume", builder.id), range(4)))
    assert codes == [0, 2, 2, 2]
    assert len(all_sessions()) == 1


def test_without_its_worktree_it_says_so_and_doctor_brings_it_back(af: Af, spawn: Spawn, repo: Path) -> None:
    builder = spawn().stop()
    git(repo, "worktree", "remove", "--force", str(builder.worktree))
    refused = af("resume", builder.id)
    assert refused.returncode == 1
    assert "hint: af doctor --fix" in refused.stderr
    assert af("doctor", "--fix").returncode == 0
    assert af("resume", builder.id).returncode == 0


def test_restoring_what_is_there_says_that_it_is_there(af: Af, spawn: Spawn) -> None:
    builder = spawn().stop()
    done = af("restore", builder.id)
    assert done.returncode == 1
    assert f"hint: af status {builder.id}" in done.stderr


def test_resumes_without_a_message_go_on_with_the_same_conversation(af: Af, spawn: Spawn) -> None:
    builder = spawn("[[nocommit]]")
    wait_until(lambda: state(af, builder.id) == "idle", what="the first turn to end")
    for _ in range(2):
        assert af("stop", builder.id).returncode == 0
        done = af("resume", builder.id, "--json")
        assert json.loads(done.stdout)["continues"] is True, done.stderr
    assert af("stop", builder.id).returncode == 0
    resumed = af("resume", builder.id, "--json")
    wait_until(lambda: state(af, builder.id) == "idle", what="the builder to be back")
    assert json.loads(resumed.stdout)["continues"] is True
    assert "resumed conversation" in af("capture", builder.id).stdout


def cut_short(af: Af, text: str = "Work [[sleep:600]] [[nocommit]]") -> str:
    """A builder whose tmux server died in the middle of its turn."""
    id = af("spawn", text, "--runtime", "demo").stdout.strip()
    wait_until(lambda: status_of(af, id)["status"]["source"] == "hook", what="the turn to begin")
    subprocess.run(["tmux", "kill-server"], check=True)
    wait_until(lambda: state(af, id) == "lost", what="the session to be gone")
    return id


def test_a_turn_that_was_cut_short_is_not_idle(af: Af) -> None:
    id = cut_short(af)
    done = af("recover", "--yes")
    assert "in the middle of a turn" in done.stderr
    assert f'hint: af send {id} "Go on"' in done.stderr
    wait_until(lambda: state(af, id) == "interrupted", what="the builder to be back")
    waited = af("wait", id)
    assert waited.returncode == 1
    assert f"{id} was interrupted" in waited.stderr
    assert af("wait", id, "--for", "interrupted").returncode == 0
    assert af("stop", id).returncode == 0
    assert status_of(af, id)["status"]["reason"] == "by af stop; its turn was cut short"
    pruned = af("prune")
    assert state(af, id) == "stopped"
    assert "cut short" in pruned.stdout + pruned.stderr
    assert af("resume", id).returncode == 0
    wait_until(lambda: state(af, id) == "interrupted", what="the builder to be back again")
    assert af("send", id, "[[nocommit]]").returncode == 0
    assert af("wait", id).returncode == 0
    assert state(af, id) == "idle"


def test_recover_continues_those_that_were_in_the_middle(af: Af, spawn: Spawn) -> None:
    done_before = spawn("[[nocommit]]")
    id = cut_short(af)
    assert "hint: af recover --yes --continue mine\n" in af("recover", "--continue", "mine").stderr
    back = af("recover", "--yes", "--continue", "[[say:carried on]] [[nocommit]]")
    assert back.returncode == 0, back.stderr
    assert af("wait", id, done_before.id).returncode == 0
    assert "carried on" in af("capture", id).stdout
    assert "carried on" not in af("capture", done_before.id).stdout
    prompt = Path(status_of(af, id)["prompt_file"])
    assert "[[sleep:600]]" in prompt.read_text()


def test_an_open_question_is_still_open_after_a_resume(af: Af) -> None:
    id = af("spawn", "[[ask:May I?]]", "--runtime", "demo").stdout.strip()
    assert af("wait", id, "--for", "waiting").returncode == 0
    assert af("stop", id).returncode == 0
    assert af("resume", id, "--continue", "").returncode == 2
    assert af("resume", id).returncode == 0
    wait_until(lambda: state(af, id) == "interrupted", what="the builder to be back")
    assert "May I?" in status_of(af, id)["status"]["reason"]
