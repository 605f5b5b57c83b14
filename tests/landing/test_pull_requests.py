"""`af pr`: what is pushed and asked of `gh` and `glab`, what is never overwritten, and what lands there."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.conftest import Af
from tests.farm.conftest import Spawned, status_of
from tests.gitrepo import commit_files, git, write_files
from tests.landing import fake_forge

Spawn = Callable[..., Spawned]


@dataclass
class Forge:
    """A remote with `main`, and a program that keeps the pull requests of its branches."""

    place: Path
    repo: Path
    af: Af
    name: str = "gh"

    def __call__(self, *args: str) -> CompletedProcess[str]:
        return self.af(*args, env={"PATH": f"{self.place / 'bin'}{os.pathsep}{os.environ['PATH']}"})

    def told(self, *args: str, code: int = 0) -> list[dict[str, Any]]:
        done = self("pr", "--json", *args)
        assert done.returncode == code, done.stdout + done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)["pull_requests"]
        return found

    @property
    def requests(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((self.place / "requests.json").read_text())
        return found

    def change(self, **facts: object) -> None:
        """Somebody does it there."""
        (self.place / "requests.json").write_text(json.dumps([{**one, **facts} for one in self.requests]))

    @property
    def asked(self) -> list[list[str]]:
        return [json.loads(line) for line in (self.place / "asked.log").read_text().splitlines()]

    def tip(self, branch: str) -> str:
        return git(self.place / "remote.git", "rev-parse", "-q", "--verify", branch, check=False)


def made(name: str, tmp_path: Path, repo: Path, af: Af) -> Forge:
    place = tmp_path / "forge"
    (place / "bin").mkdir(parents=True)
    program = place / "bin" / name
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {fake_forge.__file__} {name} {place} "$@"\n')
    program.chmod(0o755)
    git(place, "init", "-q", "--bare", "-b", "main", "remote.git")
    git(repo, "remote", "add", "origin", str(place / "remote.git"))
    git(repo, "push", "-q", "-u", "origin", "main")
    assert af("config", "set", "forge.command", name).returncode == 0
    write_files(repo, {".git/info/exclude": "/agent-farm.toml\n/.agent-farm/\n/.builders/\n"})
    return Forge(place, repo, af, name)


@pytest.fixture
def forge(tmp_path: Path, repo: Path, af: Af) -> Forge:
    return made("gh", tmp_path, repo, af)


@pytest.fixture
def builder(spawn: Spawn, forge: Forge) -> Spawned:
    builder = spawn("--shell")
    commit_files(builder.worktree, {"work": "1\n"}, "step `one`\n\n$(touch pwned) @everybody")
    return builder


@pytest.mark.parametrize("name", ["gh", pytest.param("glab", marks=pytest.mark.slow)])
def test_it_is_pushed_opened_and_later_updated(
    name: str, tmp_path: Path, repo: Path, af: Af, spawn: Spawn
) -> None:
    forge = made(name, tmp_path, repo, af)
    builder = spawn("--shell")
    commit_files(builder.worktree, {"work": "1\n"}, "step ```one``` @everybody $(touch pwned)")
    write_files(builder.worktree, {"left": "x\n"})
    (one,) = forge.told(builder.id)
    assert (one["did"], one["left_behind"]) == ("opened", ["left"])
    facts = one["pull_request"]
    assert (facts["number"], facts["state"], facts["head"]) == (1, "open", builder.tip)
    assert (facts["url"], facts["base"]) == ("https://forge.example/1", "main")
    assert forge.tip(builder.branch) == builder.tip
    (request,) = forge.requests
    assert (request["branch"], request["into"]) == (builder.branch, "main")
    assert f"````text\n{builder.git('log', '-1', '--format=%h')} step ```one``` @everybody" in request["body"]
    assert "No check has judged it." in request["body"]
    assert not (repo / "pwned").exists()

    commit_files(builder.worktree, {"work": "2\n"}, "step two")
    builder.git("commit", "-q", "--amend", "-m", "another step two")
    (one,) = forge.told(builder.id)
    assert (one["did"], one["pull_request"]["number"]) == ("updated", 1)
    assert forge.tip(builder.branch) == builder.tip
    assert "another step two" in forge.requests[0]["body"]
    builder.git("commit", "-q", "--amend", "-m", "once more")  # what af pushed, af may replace
    assert forge.told(builder.id)[0]["did"] == "updated"
    assert forge.tip(builder.branch) == builder.tip
    assert len(forge.requests) == 1


@pytest.mark.slow
def test_what_somebody_else_pushed_is_never_overwritten(
    builder: Spawned, forge: Forge, tmp_path: Path
) -> None:
    forge.told(builder.id)
    git(tmp_path, "clone", "-q", str(forge.place / "remote.git"), "other")
    git(tmp_path / "other", "switch", "-q", builder.branch)
    theirs = commit_files(tmp_path / "other", {"theirs": "x\n"})
    git(tmp_path / "other", "push", "-q")
    commit_files(builder.worktree, {"work": "2\n"})
    done = forge("pr", builder.id)
    assert done.returncode == 1
    assert f"{builder.branch} on origin is at {theirs[:12]}, which af has not pushed" in done.stderr
    assert "hint: git fetch origin\n" in done.stderr
    assert forge.tip(builder.branch) == theirs


@pytest.mark.slow
def test_a_branch_that_was_there_before_stays(builder: Spawned, forge: Forge, repo: Path) -> None:
    git(repo, "push", "-q", "origin", f"main:{builder.branch}")
    assert forge("pr", builder.id).returncode == 1
    assert forge.tip(builder.branch) == git(repo, "rev-parse", "main")


@pytest.mark.slow
def test_a_rejected_push_and_a_hook_that_refuses_say_so(builder: Spawned, forge: Forge, repo: Path) -> None:
    write_files(repo, {".git/hooks/pre-push": "#!/bin/sh\necho not today >&2\nexit 1\n"})
    (repo / ".git/hooks/pre-push").chmod(0o755)
    done = forge("pr", builder.id)
    assert done.returncode == 1
    assert "not today" in done.stderr
    assert forge.tip(builder.branch) == ""
    (repo / ".git/hooks/pre-push").unlink()
    hook = forge.place / "remote.git/hooks/pre-receive"
    hook.write_text("#!/bin/sh\necho protected >&2\nexit 1\n")
    hook.chmod(0o755)
    done = forge("pr", builder.id)
    assert f"origin did not take {builder.branch}" in done.stderr
    assert "remote: protected" in done.stderr
    hook.unlink()
    assert forge.told(builder.id)[0]["did"] == "opened"


@pytest.mark.slow
def test_a_push_that_was_not_written_down_to_its_end_is_still_afs(builder: Spawned, forge: Forge) -> None:
    (forge.place / "broken").write_text("HTTP 502")
    assert "HTTP 502" in forge("pr", builder.id).stderr
    (forge.place / "broken").unlink()
    known = builder.repo / ".agent-farm/runs" / builder.id / "pull-request.json"
    forge.told(builder.id)
    before = json.loads(known.read_text())
    commit_files(builder.worktree, {"work": "2\n"})
    git(builder.repo, "push", "-q", "origin", f"{builder.tip}:{builder.branch}")  # killed right after it
    before["pushed"].append(builder.tip)
    known.write_text(json.dumps(before))
    commit_files(builder.worktree, {"work": "3\n"})
    assert forge.told(builder.id)[0]["did"] == "updated"
    assert forge.tip(builder.branch) == builder.tip


@pytest.mark.slow
def test_squashed_there_is_landed_here_and_only_what_was_merged(
    builder: Spawned, forge: Forge, af: Af
) -> None:
    forge.told(builder.id)
    git(builder.repo, "fetch", "-q")
    assert "PR #1 open" in af("status").stdout
    assert status_of(af, builder.id)["git"]["landed"] is False  # its own branch there is no landing
    builder.stop()
    assert af("prune", builder.id).returncode == 4
    forge.change(state="merged", head=builder.tip, into="elsewhere")
    forge.told("--refresh")
    assert status_of(af, builder.id)["git"]["landed"] is False
    forge.change(into="main")
    (one,) = forge.told("--refresh", builder.id)
    assert (one["did"], one["pull_request"]["state"]) == ("looked", "merged")
    assert status_of(af, builder.id)["git"]["landed"] is True
    assert "landed PR #1 merged" in af("status").stdout
    assert forge.told(builder.id)[0]["did"] == "none"
    commit_files(builder.worktree, {"more": "x\n"}, "made since")
    assert status_of(af, builder.id)["git"]["landed"] is False
    done = af("prune", builder.id)
    assert (done.returncode, "made since" in done.stderr, "1 commit not landed" in done.stderr) == (
        4,
        True,
        True,
    )
    builder.git("reset", "-q", "--hard", "HEAD~1")
    assert af("prune", builder.id).returncode == 0


@pytest.mark.slow
def test_closed_there_is_shown_and_has_not_landed(builder: Spawned, forge: Forge, af: Af) -> None:
    forge.told(builder.id)
    forge.change(state="closed")
    assert forge.told("--refresh")[0]["pull_request"]["state"] == "closed"
    assert "PR #1 closed" in af("status").stdout
    builder.stop()
    assert af("prune", builder.id).returncode == 4
    assert forge.told(builder.id)[0]["did"] == "none"  # closed with exactly this: nobody asks again
    commit_files(builder.worktree, {"work": "better\n"})
    assert forge.told(builder.id)[0]["pull_request"]["number"] == 2


@pytest.mark.slow
def test_a_fork_with_a_branch_of_that_name_is_somebody_elses(builder: Spawned, forge: Forge) -> None:
    theirs = {"number": 1, "state": "open", "branch": builder.branch, "into": "main", "head": builder.tip,
              "fork": True, "title": "", "body": ""}  # fmt: skip
    (forge.place / "requests.json").write_text(json.dumps([theirs]))
    assert forge.told(builder.id)[0]["pull_request"]["number"] == 2


@pytest.mark.slow
def test_what_cannot_be_asked_for(builder: Spawned, forge: Forge, spawn: Spawn, af: Af, repo: Path) -> None:
    empty = spawn("--shell")
    assert f"{empty.id} has committed nothing" in forge("pr", empty.id).stderr
    assert f"hint: af pr {empty.id}\n" in forge("pr", "--refresh", empty.id).stderr
    assert forge("pr").returncode == 2
    assert "No builder has a pull request." in forge("pr", "--refresh").stderr
    done = forge("pr", empty.id, builder.id)
    assert done.returncode == 1
    assert "PR #1 open, opened  https://forge.example/1" in done.stdout
    git(repo, "remote", "remove", "origin")
    assert "The repository has no remote" in forge("pr", builder.id).stderr
