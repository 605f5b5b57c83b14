"""`af spawn --on` with what else a spawn takes: what is read here is told there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Af
from tests.farm.test_spawn_issue import GITHUB, shims, stand_in
from tests.fleet.machines import Node
from tests.fleet.test_checkpoints import worktree
from tests.fleet.test_fleet import ok, shown
from tests.gitrepo import commit_files, git

pytestmark = pytest.mark.slow
__all__ = ["shims"]  # the fixture
WORDS = ("spawn", "--on", "big", "--runtime", "demo")


def run_file(big: Node, id: str, name: str) -> str:
    return (big.farms[0] / ".agent-farm/runs" / id / name).read_text()


def made(af: Af, *words: str, **more: Any) -> dict[str, Any]:
    done = af(*WORDS, "--json", *words, **more)
    assert done.returncode == 0, done.stderr + done.stdout
    return dict(json.loads(done.stdout))


def test_several_at_once(af: Af, big: Node, repo: Path, tmp_path: Path) -> None:
    ids = [one["id"] for one in made(af, "Fix the login", "-n", "2", "--name", "fix")["builders"]]
    assert ids == ["fix-1", "fix-2"]
    tasks = tmp_path / "tasks.md"
    tasks.write_text("- [ ] Fix the logout\n- [x] done\n- [ ] Fix the title\n")
    more = made(af, "--tasks-file", str(tasks))["builders"]
    assert [one["host"] for one in more] == ["big", "big"]
    assert "Fix the title" in run_file(big, more[1]["id"], "prompt.md")
    tasks.write_text('{"task": "One"}\n{"task": "Two", "files": ["gone.py"]}\n')
    wrong = af(*WORDS, "--tasks-file", str(tasks))
    assert wrong.returncode == 2
    assert "Nothing was spawned: 1 of 2 tasks are not possible" in wrong.stderr
    tasks.write_text('{"task": "One", "on": "local"}\n')
    assert "on applies to all tasks" in af(*WORDS, "--tasks-file", str(tasks)).stderr
    found = json.loads(ok(af, "status", "--fresh", "--json"))["builders"]
    assert len(found) == 4


def test_an_issue_is_read_here_and_a_role_too(af: Af, big: Node, repo: Path, shims: Path) -> None:
    role = shims / "role.md"
    role.write_text("You fix logins.\n")
    env = stand_in(shims, "gh", GITHUB)
    builder = made(af, "--issue", "42", "--role", str(role), env=env)["builder"]
    id = builder["id"]
    assert id.startswith("issue-42-")
    assert builder["issue"] == "https://github.com/o/r/issues/42"
    prompt = run_file(big, id, "prompt.md")
    assert prompt.startswith("Work on this issue: Login fails (#42)\n")
    assert "Since Monday." in prompt
    assert run_file(big, id, "role.md") == "You fix logins.\n"
    ok(af, "wait", id, "--timeout", "120")
    ok(af, "stop", id)
    ok(af, "resume", id)
    gone = af(*WORDS, "Fix", "--role", str(shims / "none.md"))
    assert gone.returncode == 2
    assert "No role file" in gone.stderr


def test_an_item_of_a_spec_is_marked_here_once_it_has_landed(af: Af, big: Node, repo: Path) -> None:
    commit_files(repo, {"docs/todo.md": "- [ ] T1 Fix the login\n- [ ] T2 Fix the logout\n"})
    builder = made(af, "--spec", "todo.md", "--item", "T2", cwd=repo / "docs")["builder"]
    assert "Do task T2 of docs/todo.md" in run_file(big, builder["id"], "prompt.md")
    ok(af, "wait", builder["id"], "--timeout", "120")
    ok(af, "merge", builder["id"])
    assert "- [x] T2" in (repo / "docs/todo.md").read_text()
    git(repo, "checkout", "docs/todo.md")
    one = made(af, "Look at it", "--files", "todo.md", cwd=repo / "docs")["builder"]
    assert "docs/todo.md" in run_file(big, one["id"], "prompt.md")


def test_a_branch_that_is_there_goes_on_and_stays(af: Af, big: Node, repo: Path) -> None:
    git(repo, "checkout", "-qb", "feature")
    commit_files(repo, {"begun.txt": "begun\n"})
    git(repo, "checkout", "-q", "main")
    builder = made(af, "Finish it", "--branch", "feature")["builder"]
    id = builder["id"]
    assert builder["branch"] == "feature"
    assert (worktree(big, id) / "begun.txt").exists()
    second = af(*WORDS, "Finish it", "--branch", "feature")
    assert second.returncode == 2
    assert f"The builder {id} already works on feature" in second.stderr
    ok(af, "wait", id, "--timeout", "120")
    one = shown(af, id)
    assert one["git"]["ahead"] == 2
    ok(af, "merge", id)
    assert git(repo, "rev-parse", "feature") == big.run("git", "rev-parse", "feature")[:40]
    told = ok(af, "prune", "--stop", id)
    assert "with feature" not in told
    assert git(repo, "branch", "--list", "feature").strip() == "feature"


@pytest.mark.parametrize(
    ("words", "why", "hint"),
    [
        (("--after", "x"), "queue of this machine", "af spawn --on local …"),
        (("--stack", "x"), "moved along", "af spawn --on … --base builder/ID …"),
        (("--ephemeral",), "before its work has come home", "af prune --landed"),
    ],
)
def test_what_stays_here_says_why(af: Af, big: Node, words: tuple[str, ...], why: str, hint: str) -> None:
    done = af(*WORDS, "Fix", *words)
    assert done.returncode == 2
    assert f"{words[0]} cannot be combined with --on" in done.stderr
    assert why in done.stderr
    assert f"hint: {hint}\n" in done.stderr


def test_what_fails_there_leaves_the_branch_that_was_there(af: Af, big: Node, repo: Path) -> None:
    git(repo, "branch", "feature")
    big.run("git", "fetch", "-q", str(repo), "main:feature")  # somebody has one of that name there
    done = af(*WORDS, "Fix", "--branch", "feature")
    assert done.returncode in (1, 2), done.stdout
    assert "There is a branch feature" in done.stderr
    assert git(repo, "branch", "--list", "feature").strip() == "feature"
    assert json.loads(ok(af, "status", "--json"))["builders"] == []
