"""`[limits] builds`: what a builder's PATH begins with, and what its status says while it waits."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agent_farm.governor.slots import Limits, make_places, slot, waiting_runs
from tests.conftest import Af
from tests.farm.conftest import status_of
from tests.gitrepo import commit_files
from tests.waiting import wait_until


def variables(run: Path) -> dict[str, str]:
    pid = json.loads((run / "processes.json").read_text())["runtime"]
    lines = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(line.split("=", 1) for line in lines if "=" in line)


def test_a_setup_waits_for_its_turn_and_status_says_so(repo: Path, home: Path, af: Af) -> None:
    settings = '[limits]\nbuilds = 1\n[worktree]\nsetup = "touch made"\n'
    commit_files(repo, {"agent-farm.toml": settings})
    limits = Limits(home / ".local/state/agent-farm/builds", 1)
    make_places(limits)
    with slot(limits, "another"):
        done = af("spawn", "--runtime", "demo", "--yes", "--name", "one", "Work")
        assert done.returncode == 0, done.stderr
        wait_until(
            lambda: status_of(af, "one")["status"]["reason"] == "queued for build", what="its queueing"
        )
        assert status_of(af, "one")["status"]["state"] == "preparing"
        assert "(queued for build) Work" in af("status").stdout
        assert not (repo / ".builders/one/made").exists()
    assert af("wait", "one", "--timeout", "300").returncode == 0
    assert (repo / ".builders/one/made").exists()
    run = repo / ".agent-farm/runs/one"
    assert variables(run)["PATH"].split(os.pathsep)[0] == str(run / "bin")
    assert (run / "bin/make").exists()


def test_a_check_waits_for_its_turn(repo: Path, home: Path, af: Af) -> None:
    commit_files(repo, {"agent-farm.toml": '[limits]\nbuilds = 1\n[check]\ncommand = "true"\n'})
    assert af("spawn", "--runtime", "demo", "--yes", "--name", "one", "[[write:a]]").returncode == 0
    assert af("wait", "one", "--timeout", "300").returncode == 0
    limits = Limits(home / ".local/state/agent-farm/builds", 1)
    with ThreadPoolExecutor() as threads:
        with slot(limits, "another"):
            checked = threads.submit(af, "check", "one", "--yes")
            wait_until(lambda: waiting_runs(limits.directory), what="a check that waits")
            assert status_of(af, "one")["status"]["reason"] == "queued for build"
            assert status_of(af, "one")["status"]["state"] == "idle"
        assert checked.result().returncode == 0
    assert status_of(af, "one")["status"]["reason"] != "queued for build"


def test_a_check_is_a_build_like_others(repo: Path, home: Path, af: Af) -> None:
    """Others come first, it goes first, its make shares the jobs, and it ends as it would without a limit."""
    told = repo.parent / "told"
    make = "all:\n\t@nice > $(TOLD); cat /proc/self/oom_score_adj /proc/self/autogroup >> $(TOLD) || true\n"
    make += "\t@echo $(MAKEFLAGS) | tr ' ' '\\n' | grep jobserver >> $(TOLD)\n\t@kill -ALRM $$PPID\n"
    settings = "[limits]\nbuilds = 1\nbuild_jobs = 2\n[check]\n"
    settings += f"command = \"make TOLD='{told}'; kill -USR1 $$\"\n"
    commit_files(repo, {"agent-farm.toml": settings, "Makefile": make})
    assert af("spawn", "--runtime", "demo", "--yes", "--name", "one", "[[write:a]]").returncode == 0
    assert af("wait", "one", "--timeout", "300").returncode == 0
    checked = json.loads(af("check", "one", "--yes", "--json", timeout=120).stdout)
    assert checked["builders"][0]["reason"] == "the check was ended by SIGUSR1"
    nice, oom, *others = told.read_text().splitlines()
    assert (int(nice), oom) == (os.getpriority(os.PRIO_PROCESS, 0) + 10, "500")
    if os.path.exists("/proc/self/autogroup"):
        assert others.pop(0).endswith(" nice 10")
    assert others[0].startswith("--jobserver-auth=")


def test_a_check_that_a_builder_asks_for_does_not_wait_for_itself(repo: Path, home: Path, af: Af) -> None:
    settings = '[limits]\nbuilds = 1\n[check]\ncommand = "make"\n'
    commit_files(repo, {"agent-farm.toml": settings, "Makefile": "all:\n\ttrue\n"})
    assert af("spawn", "--runtime", "demo", "--yes", "--name", "one", "[[write:a]]").returncode == 0
    assert af("wait", "one", "--timeout", "300").returncode == 0
    path = variables(repo / ".agent-farm/runs/one")["PATH"]
    done = af("check", "one", "--yes", env={"PATH": path}, timeout=120)
    assert done.returncode == 0, done.stderr


def test_slots_that_cannot_be_used_are_said_at_the_spawn_and_hold_up_no_check(
    repo: Path, home: Path, af: Af
) -> None:
    commit_files(repo, {"agent-farm.toml": '[limits]\nbuilds = 1\n[check]\ncommand = "true"\n'})
    assert af("spawn", "--runtime", "demo", "--yes", "--name", "one", "[[write:a]]").returncode == 0
    assert af("wait", "one", "--timeout", "300").returncode == 0
    door = home / ".local/state/agent-farm/builds/door"
    door.unlink()
    os.mkfifo(door)
    done = af("spawn", "--runtime", "demo", "--yes", "--name", "two", "Work", timeout=120)
    assert done.returncode == 1
    assert "The slots of limits.builds cannot be used" in done.stderr
    assert f"{door}: not a plain file" in done.stderr
    assert af("check", "one", "--yes", timeout=120).returncode == 0


def test_without_the_setting_nothing_changes(repo: Path, home: Path, af: Af) -> None:
    assert af("spawn", "--runtime", "demo", "--name", "one", "Work").returncode == 0
    assert af("wait", "one", "--timeout", "300").returncode == 0
    run = repo / ".agent-farm/runs/one"
    assert not (run / "bin").exists()
    assert variables(run)["PATH"] == os.environ["PATH"]
    assert not (home / ".local/state/agent-farm/builds").exists()


def test_a_command_that_is_no_name_of_a_program_is_refused(repo: Path, af: Af) -> None:
    commit_files(repo, {"agent-farm.toml": '[limits]\nbuilds = 1\nbuild_commands = ["../evil"]\n'})
    done = af("spawn", "--runtime", "demo", "--name", "one", "Work")
    assert done.returncode != 0
    assert "limits.build_commands: '../evil' does not begin with the name of a program" in done.stderr
    assert not (repo / ".builders/one").exists()
