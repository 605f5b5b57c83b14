"""The shipped executables as runtimes: an entry of their name in agent_runtime.json is all it takes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.external_driver.adapter_commands import DrivenSession
from agent_farm.runtimes.origin import repository_program
from tests.conftest import Af
from tests.gitrepo import git
from tests.runtimes.bench import BINARIES, KEYS, processes_that_see, write_stand_in
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def bin_first(tmp_path: Path) -> dict[str, str]:
    """Where the stand-ins are found; every program of the shell beside them."""
    (tmp_path / "seen").mkdir()
    for name in BINARIES.values():
        write_stand_in(tmp_path / "bin", name)
    return {**KEYS, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "SEEN": str(tmp_path / "seen")}


def declare(repo: Path, *names: str, settings: str = "", **entry: object) -> None:
    (repo / "agent_runtime.json").write_text(json.dumps({"runtimes": dict.fromkeys(names, entry)}))
    (repo / "agent-farm.toml").write_text(f'[env]\npass = ["SEEN"]\n{settings}')


def test_it_is_listed_with_what_is_missing(af: Af, repo: Path) -> None:
    declare(repo, *BINARIES)
    lines = [
        line.split(maxsplit=1) for line in af("runtimes", env={"PATH": "/usr/bin:/bin"}).stdout.splitlines()
    ]
    told = {words[0]: words[1] for words in lines}
    for name in ("codex-cli", "github-copilot"):
        assert f"{BINARIES[name]} is not installed; npm install" in told[name]
    assert "claude is not logged in" in told["claude-mcp"]  # the SDK brings the CLI along


def test_it_is_usable_where_its_cli_is_found(af: Af, repo: Path, bin_first: dict[str, str]) -> None:
    declare(repo, *BINARIES)
    listed = json.loads(af("runtimes", "--json", env=bin_first).stdout)["runtimes"]
    assert {entry["name"] for entry in listed if entry["usable"]} >= {*BINARIES}


@pytest.mark.parametrize("name", sorted(BINARIES))
def test_a_spawned_builder_of_it(af: Af, repo: Path, bin_first: dict[str, str], name: str) -> None:
    declare(repo, name, timeout_minutes=30)
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "Declare it")
    key = get_adapter(name, repo).cli.keys[0]
    done = af(
        "spawn",
        "Fix auth",
        "--runtime",
        name,
        "--yes",
        "--json",
        env={**bin_first, key: "k", "OTHER_KEY": "k"},
    )
    assert done.returncode == 0, done.stderr
    builder = json.loads(done.stdout)["builder"]["id"]
    waited = af("wait", builder, "--for", "idle", "--timeout", "300", env=bin_first)
    assert waited.returncode == 0, waited.stderr
    seen = json.loads((Path(bin_first["SEEN"]) / "seen-0.json").read_text())
    assert "Fix auth" in seen["prompt"]
    assert key in seen["env"]  # its CLI's own; nobody had to declare it
    assert "OTHER_KEY" not in seen["env"]
    state = json.loads((repo / ".agent-farm" / "runs" / builder / "state.json").read_text())
    assert (state["status"], state["artifacts"]) == ("completed", ["made.txt"])


def test_a_failed_builder_names_the_log(af: Af, repo: Path, bin_first: dict[str, str]) -> None:
    declare(repo, "claude-mcp")
    done = af("spawn", "FAIL", "--runtime", "claude-mcp", "--yes", "--json", env=bin_first)
    builder = json.loads(done.stdout)["builder"]["id"]
    assert af("wait", builder, "--for", "failed", "--timeout", "300", env=bin_first).returncode == 0
    sessions = repo / ".agent-farm" / "sessions"
    screen = wait_until(lambda: af("capture", builder, env=bin_first).stdout, what="the screen")
    assert str(next(sessions.glob("claude-mcp-*")).name) in screen.replace("\n", "")


def test_it_is_no_default_and_none_of_the_repositorys_programs(
    af: Af, repo: Path, bin_first: dict[str, str]
) -> None:
    declare(repo, "codex-cli", settings='[spawn]\nruntime = "codex-cli"\n')
    assert repository_program(repo, "codex-cli") is None
    assert af("spawn", "--yes", "Fix auth", env=bin_first).returncode == 0
    declare(repo, "codex-cli")
    (Path(bin_first["PATH"].split(":")[0]) / "codex").unlink()
    nothing = {"PATH": "/usr/bin:/bin", **dict.fromkeys(KEYS, "")}
    refused = af("spawn", "Fix auth", env={**bin_first, **nothing})
    assert "No runtime is usable" in refused.stderr
    assert "codex-cli" not in refused.stderr


def test_an_adapter_of_the_repository_may_bear_its_name(repo: Path) -> None:
    declare(repo, "codex-cli", adapter="tools/codex-cli")
    adapter = get_adapter("codex-cli", repo)
    assert str(repo / "tools" / "codex-cli") in str(adapter.problem({}))
    assert adapter.cli.every_variable == ()
    program = repository_program(repo, "codex-cli")
    assert program
    assert "tools/codex-cli" in str(program)


@pytest.mark.parametrize("place", [".", ".agent-farm"])
def test_a_log_is_named_where_the_contract_has_it_and_where_ours_is(repo: Path, place: str) -> None:
    log = repo / place / "sessions" / "s-1" / "adapter.log"
    log.parent.mkdir(parents=True)
    log.touch()
    session = DrivenSession(["x"], "x", "b", "s", "p", str(repo), 60)
    told = {}
    for session.id in ("s-1", "s-2", "../sessions/s-1"):
        told[session.id] = str(session.failure())
    assert told["s-1"] == f"session s-1 failed; see {log}"
    assert told["s-2"] == "session s-2 failed"
    assert told["../sessions/s-1"] == "session ../sessions/s-1 failed"


def test_a_stop_in_the_middle_is_noted_and_leaves_no_process(
    af: Af, repo: Path, bin_first: dict[str, str]
) -> None:
    declare(repo, "codex-cli")
    done = af("spawn", "HANG", "--yes", "--runtime", "codex-cli", "--json", env=bin_first)
    builder = json.loads(done.stdout)["builder"]["id"]
    seen = Path(bin_first["SEEN"])
    wait_until(lambda: list(seen.glob("seen-*.json")), what="the CLI at work")
    assert af("stop", builder, env=bin_first).returncode == 0
    wait_until(lambda: not processes_that_see(seen), what="no process to be left")
    session = next((repo / ".agent-farm" / "sessions").glob("codex-cli-*"))
    assert json.loads((session / "session.json").read_text())["status"] == "failed"
    state = json.loads((repo / ".agent-farm" / "runs" / builder / "state.json").read_text())
    assert (state["status"], state["failure_count"]) == ("failed", 1)
