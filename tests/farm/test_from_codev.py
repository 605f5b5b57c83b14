"""`af init --from-codev`: codev's settings in the farm's words, its protocols and roles as they are."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from tests.conftest import Af
from tests.gitrepo import commit_files, write_files

CONFIG = {
    "shell": {"architect": "claude", "builder": "claude --dangerously-skip-permissions --model opus -v"},
    "porch": {
        "checks": {
            "build": {"command": "pnpm build", "cwd": "packages/my app"},
            "e2e": {"skip": True},
            "auto": {"command": "make"},
        },
        "consultation": {"models": ["codex"]},
    },
    "worktree": {"symlinks": [".env"], "postSpawn": ["pnpm install", "cd web && pnpm build"]},
    "forge": {"provider": "gitlab"},
    "dashboard": {"frontend": "react"},
}
PROTOCOL = {"phases": [{"id": "fix", "checks": {"tests": "npm test -- --exclude='e2e'", "build": "make"}}]}
CODEV = {
    ".codev/config.json": json.dumps(CONFIG),
    "codev/protocols/bugfix/protocol.md": "# Bugfix\n",
    "codev/protocols/bugfix/protocol.json": json.dumps(PROTOCOL),
    "codev/roles/builder.md": "Run `porch next`.\n",
}


def init(af: Af, **more: Any) -> dict[str, Any]:
    done = af("init", "--from-codev", "--json", **more)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_settings_that_have_an_equal_are_stored_and_the_others_are_named(repo: Path, af: Af) -> None:
    commit_files(repo, CODEV)
    found = init(af)
    stored = tomllib.loads((repo / "agent-farm.toml").read_text())
    assert {name: table for name, table in stored.items() if table} == {
        "spawn": {"runtime": "claude-code", "permissions": "all"},
        "runtimes": {"claude-code": {"model": "opus", "args": ["-v"]}},
        "worktree": {"link": [".env"], "setup": "( pnpm install ) && ( cd web && pnpm build )"},
        "check": {"build": {"command": "cd 'packages/my app' && pnpm build"}},
        "forge": {"command": "glab"},
    }
    left = {one["key"]: one["why"] for one in found["not_translated"]}
    assert set(left) == {
        "shell.architect", "porch.checks.e2e", "porch.checks.auto", "porch.consultation",
        "dashboard.frontend", "codev/roles/builder.md",
    }  # fmt: skip
    assert "needs porch, not installed here" in left["codev/roles/builder.md"]
    assert found["checks"] == {"tests": "npm test -- --exclude='e2e'"}
    assert found["created"] == ["agent-farm.toml"]


def test_what_a_repository_brings_is_not_agreed_to(repo: Path, af: Af) -> None:
    commit_files(repo, CODEV)
    init(af)
    asked = json.loads(af("config", "list", "--json").stdout)["not_agreed"]
    assert {"spawn.permissions", "worktree.setup", "worktree.link", "check.build.command"} <= set(asked)


def test_settings_that_are_there_stay(repo: Path, af: Af) -> None:
    commit_files(repo, {**CODEV, "agent-farm.toml": '[spawn]\nruntime = "codex"\n'})
    left = {one["key"]: one["why"] for one in init(af)["not_translated"]}
    assert left["shell.builder"] == "agent-farm.toml sets spawn.runtime already"
    assert tomllib.loads((repo / "agent-farm.toml").read_text())["spawn"]["runtime"] == "codex"


def test_protocols_of_the_installed_codev_are_copied_where_there_are_none(
    repo: Path, af: Af, tmp_path: Path
) -> None:
    commit_files(repo, {".codev/config.json": "{}"})
    package = tmp_path / "lib/codev"
    write_files(package, {"skeleton/protocols/spir/protocol.md": "# SPIR\n", "bin/codev.js": "#!/bin/sh\n"})
    (package / "bin/codev.js").chmod(0o755)
    assert "npm install -g" in init(af)["not_translated"][0]["why"]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/codev").symlink_to(package / "bin/codev.js")
    found = init(af, env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"})
    assert found["created"] == ["codev/protocols/spir/protocol.md"]
    assert (repo / "codev/protocols/spir/protocol.md").read_text() == "# SPIR\n"


def test_what_is_no_settings_of_codev_is_refused_or_named(repo: Path, af: Af) -> None:
    done = af("init", "--from-codev")
    assert (done.returncode, "codev is not set up here" in done.stderr) == (1, True)
    write_files(repo, {".codev/config.json": "{"})
    done = af("init", "--from-codev")
    assert (done.returncode, ".codev/config.json is not valid JSON" in done.stderr) == (1, True)
    assert not (repo / "agent-farm.toml").exists()
    odd = {"shell": {"builder": "aider --yes"}, "worktree": {"postSpawn": "x", "symlinks": [3]}, "porch": []}
    write_files(repo, {".codev/config.json": json.dumps(odd)})
    left = {one["key"]: one["why"] for one in init(af)["not_translated"]}
    assert left["shell.builder"].startswith("no runtime drives aider")
    assert left["worktree.postSpawn"] == "not understood: it is not a list"
    assert left["worktree.symlinks"] == "not understood: it contains something that is not text"
    (repo / ".codev/config.json").unlink()
    (repo / ".codev/config.json").symlink_to("/etc/passwd")
    done = af("init", "--from-codev")
    assert "leads out of the repository" in done.stderr


def test_its_screen_names_commands_that_can_be_typed(repo: Path, af: Af) -> None:
    commit_files(repo, CODEV)
    done = af("init", "--from-codev")
    assert 'translated forge.provider: forge.command = "glab"\n' in done.stdout
    assert "not translated dashboard.frontend: af has no equivalent\n" in done.stdout
    assert "  af config set check.tests.command " in done.stderr
    assert 'hint: git add agent-farm.toml && git commit -m "Set up agent-farm"' in done.stderr
