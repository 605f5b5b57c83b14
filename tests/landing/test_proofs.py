"""`af check`: what a builder claims is proven on its work merged into its target, until one moves."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Af
from tests.farm.conftest import Spawned, status_of
from tests.gitrepo import commit_files, git, write_files

Spawn = Callable[..., Spawned]
CHECK = "sh check.sh"


@pytest.fixture
def builder(spawn: Spawn, repo: Path, af: Af) -> Spawned:
    """Its work adds a word; the check wants that every word is known."""
    check = "for word in $(cat words); do grep -qx $word known || { echo unknown: $word; exit 3; }; done\n"
    commit_files(repo, {"check.sh": check, "words": "a\n", "known": "a\nb\n", ".gitignore": "*.log\n"})
    builder = spawn("--shell")
    assert af("config", "set", "check.command", CHECK).returncode == 0
    write_files(repo, {".git/info/exclude": "/agent-farm.toml\n/.agent-farm/\n/.builders/\n"})
    return builder


def check(builder: Spawned, *options: str) -> tuple[int, dict[str, Any]]:
    done = builder.af("check", *options, "--yes", "--json", builder.id)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, found["builders"][0]


def shown(builder: Spawned) -> Any:
    return status_of(builder.af, builder.id)["proof"]


def text(builder: Spawned, *words: str) -> str:
    done: subprocess.CompletedProcess[str] = builder.af(*words)
    return done.stdout + done.stderr


def test_a_proof_says_when_where_how_long_and_is_shown(builder: Spawned, repo: Path) -> None:
    commit_files(builder.worktree, {"words": "a\nb\n"}, "work")
    commit_files(repo, {"other": "x\n"}, "theirs")
    code, found = check(builder)
    assert (code, found["state"], found["output"]) == (0, "proven", [])
    proof = found["proof"]
    assert (proof["work"], proof["into"], proof["target"]) == (
        builder.tip,
        "main",
        git(repo, "rev-parse", "HEAD"),
    )
    (fact,) = proof["checks"]
    assert (fact["name"], fact["command"], fact["exit_code"], fact["passed"]) == ("check", CHECK, 0, True)
    assert fact["at"] > 1e9
    assert Path(fact["log"]).read_text() == ""
    git(repo, "merge", "-q", "--no-edit", builder.branch)
    assert proof["tree"] == git(repo, "rev-parse", "HEAD^{tree}")
    git(repo, "reset", "-q", "--hard", "HEAD~1")
    assert shown(builder) == proof
    assert "+1 -1 ✓ " in text(builder, "status")
    assert f"hint: af merge {builder.id}" in text(builder, "check", builder.id)
    assert text(builder, "merge", builder.id).startswith(f"{builder.id} landed on main")  # not run again
    assert "unknown" not in text(builder, "status")


def test_red_shows_the_end_of_its_log_and_again_asks_anew(builder: Spawned) -> None:
    commit_files(builder.worktree, {"words": "a\nc\n"}, "work")
    code, found = check(builder)
    assert (code, found["state"], found["reason"]) == (1, "red", "the check failed with exit code 3")
    assert found["output"] == [{"check": "check", "text": "unknown: c"}]
    at = found["proof"]["checks"][0]["at"]
    assert check(builder)[1]["proof"]["checks"][0]["at"] == at
    assert check(builder, "--again")[1]["proof"]["checks"][0]["at"] > at
    told = text(builder, "check", builder.id, "--log")
    assert f"{builder.id}  red" in told
    assert "  unknown: c\n" in told
    assert "✗" in text(builder, "status")
    assert "the check failed" in text(builder, "status")


def test_green_only_on_an_old_base_is_red(builder: Spawned, repo: Path) -> None:
    commit_files(builder.worktree, {"words": "a\nb\n"}, "work")
    assert check(builder)[0] == 0
    commit_files(repo, {"known": "a\n"}, "b is gone")
    assert (shown(builder)["state"], shown(builder)["reason"]) == ("stale", "main has moved; it was proven")
    assert check(builder)[1]["state"] == "red"


def test_moved_work_is_stale_and_so_is_work_with_changes(builder: Spawned) -> None:
    commit_files(builder.worktree, {"words": "a\nb\n"}, "work")
    check(builder)
    write_files(builder.worktree, {"words": "a\nb\nb\n"})
    assert shown(builder)["reason"] == "something is not committed; it was proven"
    assert "(✓)" in text(builder, "status")
    builder.git("commit", "-qam", "more")
    assert shown(builder)["reason"] == "the work has moved; it was proven"
    assert check(builder)[1]["state"] == "proven"


def test_what_stands_against_a_proof_before_any_check_runs(builder: Spawned, repo: Path) -> None:
    assert check(builder)[1]["reason"] == "it has committed nothing"
    builder.git("commit", "-q", "--allow-empty", "-m", "nothing")
    assert check(builder)[1]["reason"] == "its commits change nothing"
    write_files(builder.worktree, {"new": "x\n"})
    commit_files(builder.worktree, {"words": "a\nb\n"}, "work")
    code, found = check(builder)
    assert (code, found["state"], found["proof"]["evidence"]) == (1, "uncommitted", ["new"])
    builder.git("add", "new")
    builder.git("commit", "-qm", "new")
    commit_files(repo, {"words": "a\nd\n"}, "theirs")
    found = check(builder)[1]
    assert (found["state"], found["proof"]["evidence"]) == ("conflicts", ["words"])
    assert found["proof"]["checks"] == []


def test_what_has_flags_is_not_called_proven(builder: Spawned) -> None:
    commit_files(builder.worktree, {"check.sh": "exit 0\n", "words": "zzz\n"}, "work")
    code, found = check(builder)
    assert (code, found["state"]) == (1, "flagged")
    assert [(flag["kind"], flag["file"]) for flag in found["proof"]["flags"]] == [
        ("exit-forced", "check.sh"), ("check-changed", "check.sh"),
    ]  # fmt: skip
    told = text(builder, "check", builder.id)
    assert "  exit-forced  check.sh:1: forces an exit code: exit 0\n" in told
    assert "hint:" not in told
    shown_now = text(builder, "status")
    assert "✓" not in shown_now
    assert "check.sh:1: forces an exit code: exit 0 (and 1 more)" in shown_now
    commit_files(builder.worktree, {"more": "x\n"}, "more")
    assert "(!)" in text(builder, "status", "--fresh")
    assert shown(builder)["reason"] == "the work has moved; it was flagged"


def test_what_attributes_hide_from_diffs_is_looked_at_all_the_same(builder: Spawned, repo: Path) -> None:
    commit_files(repo, {".gitattributes": "*.sh -diff\n"})
    (builder.worktree / "picture").write_bytes(b"\0\nAKIAQ3EGRZ7XKJ2MNB4T\n")
    builder.git("add", "picture")
    commit_files(builder.worktree, {"check.sh": "exit 0\n"}, "work")
    found = check(builder)[1]
    assert [flag["kind"] for flag in found["proof"]["flags"]] == ["exit-forced", "check-changed"]


def test_nothing_is_proven_without_a_check_or_consent(builder: Spawned, repo: Path, af: Af) -> None:
    settings = repo / "agent-farm.toml"
    settings.write_text('[check]\ncommand = "true # not agreed to"\n')
    done = af("check", builder.id)
    assert done.returncode == 1
    assert f"hint: af check --yes {builder.id}" in done.stderr
    settings.write_text("")
    done = af("check", builder.id)
    assert "No check is declared" in done.stderr
    assert "hint: af config set check.command" in done.stderr


def test_one_that_waits_for_its_turn_has_nothing_to_judge(builder: Spawned, af: Af) -> None:
    assert af("config", "set", "limits.max_builders", "1").returncode == 0
    waiting = af("spawn", "--runtime", "demo", "Later").stdout.strip()
    told = af("check", "--yes", waiting).stderr
    assert told == f"error: {waiting} has not started\n  It has no work yet.\nhint: af queue\n"


def test_one_that_cannot_be_judged_does_not_stop_the_others(builder: Spawned, spawn: Spawn) -> None:
    other = spawn("--shell")
    commit_files(builder.worktree, {"words": "a\nb\n"}, "work")
    commit_files(other.worktree, {"words": "a\nb\n"}, "work")
    other.git("switch", "-q", "--detach", "HEAD~1")
    done = builder.af("check", "--yes", "--json", other.id, builder.id)
    found = json.loads(done.stdout)
    assert [one["id"] for one in found["builders"]] == [builder.id]
    assert [(one["id"], one["code"]) for one in found["failed"]] == [(other.id, "other-work")]
    assert done.returncode == 4


def test_a_proof_is_stale_once_other_checks_are_declared(builder: Spawned, af: Af) -> None:
    commit_files(builder.worktree, {"words": "a\nb\n"}, "work")
    assert check(builder)[0] == 0
    assert shown(builder)["state"] == "proven"
    assert af("config", "set", "check.lint.command", "false").returncode == 0
    assert (shown(builder)["state"], shown(builder)["reason"]) == (
        "stale",
        "the checks have changed; it was proven",
    )
    assert af("config", "unset", "check.lint.command").returncode == 0
    assert shown(builder)["state"] == "proven"
