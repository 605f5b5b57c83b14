"""`runtimes.NAME.unlock`: asked about where the repository says it, told at the start, shown in status."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.gitrepo import commit_files
from tests.waiting import wait_until

CLAUDE = '#!/bin/sh\nprintf "%s\\n" "$@" "home=$CLAUDE_CONFIG_DIR" > "$AF_RUN_DIR/argv"\nexec sleep 600\n'


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Where a stand-in for claude is found, with a key for it."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(CLAUDE)
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}", "ANTHROPIC_API_KEY": "k"}


def started_with(repo: Path, af: Af, env: dict[str, str], *words: str) -> tuple[dict[str, object], list[str]]:
    """The builder's record, and the arguments its runtime got."""
    done = af("spawn", "Fix", "--runtime", "claude-code", "--json", *words, env=env)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)["builder"]
    argv = repo / ".agent-farm" / "runs" / record["id"] / "argv"
    wait_until(lambda: argv.exists() and "home=" in argv.read_text(), what="the runtime's start")
    return record, argv.read_text().splitlines()


def test_a_builder_is_locked_unless_it_is_unlocked(repo: Path, af: Af, env: dict[str, str]) -> None:
    record, argv = started_with(repo, af, env)
    assert record["unlocked"] == []
    assert argv[argv.index("--setting-sources") + 1] == ""
    assert "--strict-mcp-config" in argv
    assert argv[-1] != "home="  # with a key it has a home of its own
    assert "unlocked" not in af("status").stdout


def test_the_repository_is_asked_about_it_and_the_status_shows_it(
    repo: Path, af: Af, env: dict[str, str]
) -> None:
    commit_files(repo, {"agent-farm.toml": '[runtimes.claude-code]\nunlock = ["mcp", "settings"]\n'})
    refused = af("spawn", "Fix", "--runtime", "claude-code", env=env)
    assert refused.returncode == 1
    assert "runtimes.claude-code.unlock" in refused.stderr
    record, argv = started_with(repo, af, env, "--yes")
    assert record["unlocked"] == ["settings", "mcp"]
    assert argv[argv.index("--setting-sources") + 1] == "user"
    assert "--strict-mcp-config" not in argv
    assert argv[-1] == "home="
    assert "claude-code unlocked" in af("status").stdout
    told = af("spawn", "Again", "--runtime", "claude-code", "--dry-run", env=env)
    assert "claude-code is unlocked: settings, mcp" in told.stderr


def test_what_cannot_be_unlocked_is_refused_by_name(repo: Path, af: Af) -> None:
    for runtime, word, why in (
        ("claude-code", "hooks", "It can be: settings, mcp"),
        ("demo", "settings", "demo has nothing to unlock"),
    ):
        commit_files(repo, {"agent-farm.toml": f'[runtimes.{runtime}]\nunlock = ["{word}"]\n'})
        refused = af("spawn", "Fix", "--runtime", runtime, "--yes")
        assert (refused.returncode, why in refused.stderr) == (2, True), refused.stderr
