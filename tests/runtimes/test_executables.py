"""The shipped adapter executables, with a stand-in for the CLI that is first on PATH."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_farm.runtimes.executables.shipped import EXECUTABLES, executable_path
from tests.gitrepo import git
from tests.runtimes.bench import BINARIES, Bench, made_bench

pytestmark = pytest.mark.slow

OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in sorted({*BINARIES} - {"codex-cli"})]


@pytest.fixture(params=["codex-cli", *OTHERS])
def bench(request: pytest.FixtureRequest, repo: Path, tmp_path: Path) -> Iterator[Bench]:
    with made_bench(repo, tmp_path / "bench", str(request.param)) as made:
        yield made


@pytest.mark.parametrize("bench", sorted(BINARIES), indirect=True)
def test_a_session_from_spawn_to_completed(bench: Bench) -> None:
    session = bench.spawn("Act as orchestrator\n$(touch x) 🐝 WAIT")
    bench.wait_for(session, "active")
    assert bench.load_state()["status"] == "in-progress"
    seen = bench.seen(0)
    assert str(seen["prompt"]).startswith("Act as orchestrator\n$(touch x) 🐝 WAIT\n")
    assert "Handle logins." in str(seen["prompt"])
    bench.go()
    bench.wait_for(session, "completed")
    state = bench.load_state()
    assert state["lego_name"] == "auth"
    assert (state["status"], state["failure_count"]) == ("completed", 0)
    assert "made.txt" in state["artifacts"]  # type: ignore[operator]
    assert (bench.repo / ".agent-farm" / "sessions" / session / "adapter.log").read_text()
    assert not (bench.repo / "x").exists()


def test_the_same_brief_and_state_give_the_same_session_while_it_lives(bench: Bench) -> None:
    first = bench.spawn("WAIT")
    assert bench.spawn("WAIT") == first
    bench.go()
    bench.wait_for(first, "completed")
    assert bench.spawn("again") != first


def test_the_log_says_when_it_began_what_was_said_and_how_it_ended(bench: Bench) -> None:
    session = bench.spawn("done")
    bench.wait_for(session, "completed")
    began, said, ended = [json.loads(line) for line in bench.log(session).splitlines()]
    assert began["adapter"] == f"{EXECUTABLES[bench.runtime]} begin, at most 30 minutes (timeout_minutes)"
    assert said["output"] == "all done"
    assert ended["adapter"] == "completed"
    assert began["at"] <= ended["at"]


def test_spawns_at_the_same_time_give_one_session(bench: Bench) -> None:
    words = [str(executable_path(bench.runtime)), "spawn", str(bench.brief), str(bench.state), "WAIT"]
    running = [
        subprocess.Popen(words, cwd=bench.repo, env=bench.env, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    assert len({process.communicate(timeout=60)[0] for process in running}) == 1


def test_a_failure_shows_and_is_counted(bench: Bench) -> None:
    session = bench.spawn("FAIL")
    bench.wait_for(session, "failed")
    assert bench.load_state()["failure_count"] == 1


def test_resume_goes_on_with_the_same_conversation(bench: Bench) -> None:
    session = bench.spawn("first")
    bench.wait_for(session, "completed")
    done = bench.call("resume", session, str(bench.state), "and now FAIL")
    assert (done.returncode, done.stdout) == (0, f"resumed {session}\n")
    bench.wait_for(session, "failed")
    resumed = bench.seen(1)
    assert resumed["prompt"] == "and now FAIL"
    words = [str(word) for word in resumed["argv"]]  # type: ignore[attr-defined]
    if bench.runtime == "codex-cli":
        assert words[-3:] == ["resume", "thread-7", "-"]
    else:
        began = " ".join(str(word) for word in bench.seen(0)["argv"])  # type: ignore[attr-defined]
        identity = re.search(r"--session-id[= ](\S+)", began)
        assert identity
        assert re.search(f"--resume[= ]{identity[1]}", " ".join(words))


def test_a_session_at_work_cannot_be_resumed(bench: Bench) -> None:
    session = bench.spawn("WAIT")
    done = bench.call("resume", session, str(bench.state), "more")
    assert done.returncode == 5
    assert "still at work" in done.stderr


@pytest.mark.parametrize(
    "words", [("check_status", "nobody"), ("resume", "nobody", "s.json", "p"), ("check_status", "../x")]
)
def test_an_unknown_session_is_an_error(bench: Bench, words: tuple[str, ...]) -> None:
    done = bench.call(*words)
    assert (done.returncode, done.stdout) == (3, "")
    assert "no session" in done.stderr


@pytest.mark.parametrize(
    "words", [(), ("spawn", "b"), ("check_status",), ("stop", "x"), ("spawn", "no-brief.md", "s", "p")]
)
def test_wrong_arguments(bench: Bench, words: tuple[str, ...]) -> None:
    done = bench.call(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


def test_without_its_cli_it_says_what_to_install(bench: Bench) -> None:
    if bench.runtime == "claude-mcp":
        pytest.skip("its CLI comes along with the SDK")
    (bench.binaries / BINARIES[bench.runtime]).unlink()
    done = bench.call("spawn", str(bench.brief), str(bench.state), "p", env=bench.without_others())
    assert done.returncode == 4
    assert "npm install" in done.stderr
    assert not bench.state.exists()


def test_a_dead_supervisor_is_a_failed_session(bench: Bench) -> None:
    session = bench.spawn("HANG")
    bench.wait_for(session, "active")
    for process in bench.supervisors(session):
        process.kill()
    bench.wait_for(session, "failed")


def test_the_limit_of_agent_runtime_json_ends_the_whole_session(bench: Bench) -> None:
    entry = {"adapter": f"tools/{bench.runtime}", "timeout_minutes": 0.01, "cleanup": False}
    (bench.repo / "agent_runtime.json").write_text(json.dumps({"runtimes": {"mine": entry}}))
    session = bench.spawn("HANG")
    bench.wait_for(session, "failed")
    directory = bench.repo / ".agent-farm" / "sessions" / session
    assert "timeout_minutes" in (directory / "adapter.log").read_text()
    assert (directory / "prompt.txt").exists()  # cleanup is off


def test_it_cleans_up_by_default(bench: Bench) -> None:
    session = bench.spawn("done")
    bench.wait_for(session, "completed")
    assert not (bench.repo / ".agent-farm" / "sessions" / session / "prompt.txt").exists()


def test_what_the_agent_wrote_into_its_state_is_kept(bench: Bench) -> None:
    bench.state.write_text(
        json.dumps({"lego_name": "auth", "completed_substeps": ["design"], "artifacts": ["a.py"]})
    )
    session = bench.spawn("done")
    bench.wait_for(session, "completed")
    state = bench.load_state()
    assert (state["lego_name"], state["completed_substeps"]) == ("auth", ["design"])
    assert state["artifacts"] == ["a.py", "made.txt"]


def test_a_damaged_state_is_moved_aside(bench: Bench) -> None:
    bench.state.write_text("{half")
    bench.spawn("done")
    assert bench.state.with_name("lego_state_auth.json.damaged").read_text() == "{half"


def test_a_linked_worktree_shares_the_sessions_of_its_repository(bench: Bench, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    git(bench.repo, "worktree", "add", "-q", str(tree))
    done = bench.call("spawn", str(bench.brief), str(bench.state), "done", cwd=tree)
    assert bench.status(done.stdout.strip()) in ("pending", "active", "completed")
    assert git(tree, "status", "--porcelain") in ("", "?? made.txt")


def test_spawn_returns_at_once(bench: Bench) -> None:
    begun = time.monotonic()
    bench.spawn("WAIT")
    assert time.monotonic() - begun < 60  # its run waits for ever


def test_the_three_names() -> None:
    assert sorted(EXECUTABLES) == sorted(BINARIES)
    for name in EXECUTABLES:
        assert os.access(executable_path(name), os.X_OK)


def test_without_af_it_says_so_in_one_line(bench: Bench) -> None:
    done = bench.call("check_status", "x", env={**bench.env, "PATH": os.defpath})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{bench.runtime}: af is not on PATH; this adapter is a part of it\n"
