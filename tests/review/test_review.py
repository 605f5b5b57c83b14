"""A person's way through results: what is listed, shown, marked, said and decided, at the terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Af
from tests.farm.conftest import Spawned, spawn
from tests.gitrepo import commit_files, git
from tests.waiting import wait_until

__all__ = ["spawn"]  # a fixture

Spawn = Callable[..., Spawned]
BODY = "".join(f"line {number}\n" for number in range(1, 41))


@pytest.fixture
def builder(spawn: Spawn) -> Spawned:
    found = spawn("--shell")
    commit_files(found.worktree, {"new.py": BODY}, "new")
    return found


def queue(af: Af, *ids: str) -> list[dict[str, Any]]:
    done = af("review", *ids, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["items"]
    return found


def shown(af: Af, id: str, *options: str) -> dict[str, Any]:
    done = af("review", id, "--show", *options, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def unread(found: dict[str, Any]) -> list[str]:
    """The lines that are new, with their sign."""
    return [
        line["sign"] + line["text"]
        for file in found["files"]
        for hunk in file["hunks"]
        for line in hunk["lines"]
        if line["sign"] in "+-" and not line.get("read")
    ]


def test_only_what_changed_since_it_was_read(af: Af, builder: Spawned, repo: Path) -> None:
    """Through an amend, and a rebase onto what others landed meanwhile."""
    assert len(unread(shown(af, builder.id))) == 40
    assert af("review", builder.id, "--read").returncode == 0
    assert queue(af)[0]["unread"] == 0
    assert "Nothing is new" in af("review", builder.id, "--show").stdout
    builder.git("commit", "-q", "--amend", "-m", "other words")
    assert queue(af)[0]["unread"] == 0
    commit_files(repo, {"other.txt": "theirs\n"}, "theirs")
    builder.git("rebase", "-q", "main")
    assert queue(af)[0]["unread"] == 0
    commit_files(builder.worktree, {"new.py": BODY.replace("line 7\n", "line seven\n")}, "second thoughts")
    found = shown(af, builder.id)
    assert unread(found) == ["+line 7", "+line seven"]
    assert [line["text"] for line in found["files"][0]["hunks"][0]["lines"] if line.get("gone")] == ["line 7"]
    assert af("review", builder.id, "--undo").returncode == 0
    assert queue(af)[0]["unread"] == 40


def test_riskiest_first_and_read_last(af: Af, spawn: Spawn) -> None:
    small, large = spawn("--shell"), spawn("--shell")
    commit_files(small.worktree, {"a.txt": "a\n"}, "small")
    commit_files(large.worktree, {"a.txt": BODY * 20}, "large")
    found = queue(af)
    assert [one["id"] for one in found] == [large.id, small.id]
    assert found[0]["overlaps"] == [{"id": small.id, "files": ["a.txt"]}]
    assert "no check has run on it" in found[0]["reasons"]
    af("review", large.id, "--read")
    assert [one["id"] for one in queue(af)] == [small.id, large.id]
    assert af("merge", small.id).returncode == 0
    assert [one["id"] for one in queue(af)] == [large.id]


def test_what_changes_nothing_was_not_read(af: Af, spawn: Spawn) -> None:
    empty = spawn("--shell")
    listed = af("review", empty.id, "--list").stdout
    assert "no changes" in listed
    assert " read " not in listed


def test_a_file_and_a_hunk_are_read_alone(af: Af, builder: Spawned) -> None:
    commit_files(builder.worktree, {"b.txt": "b\n"}, "more")
    assert af("review", builder.id, "--read", "--file", "new.py").returncode == 0
    assert unread(shown(af, builder.id)) == ["+b"]
    assert af("review", builder.id, "--unread", "--file", "new.py").returncode == 0
    assert len(unread(shown(af, builder.id))) == 41
    refused = af("review", builder.id, "--read", "--file", "none.py")
    assert refused.returncode == 1
    assert "changes no file none.py" in refused.stderr


def test_modes_names_and_binary_files_are_read_too(af: Af, builder: Spawned) -> None:
    (builder.worktree / "data.bin").write_bytes(b"\0\1\2")
    (builder.worktree / "new.py").chmod(0o755)
    builder.git("mv", "README.md", "weird \x1b[31m name.md")
    builder.git("add", "-A")
    builder.git("commit", "-q", "-m", "odd")
    files = {file["kind"]: file for file in shown(af, builder.id)["files"] if not file["hunks"]}
    assert files["renamed"]["former"] == "README.md"
    assert files["new"]["binary"]
    text = af("review", builder.id, "--show").stdout
    assert "binary" in text
    assert "mode 100755" in text
    assert "\x1b[31m" not in text
    af("review", builder.id, "--read")
    assert queue(af)[0]["unread"] == 0
    (builder.worktree / "data.bin").write_bytes(b"\0\1\3")
    builder.git("commit", "-q", "-a", "-m", "other bytes")
    assert [file["path"] for file in shown(af, builder.id)["files"]] == ["data.bin"]


def test_attributes_hide_nothing(af: Af, builder: Spawned) -> None:
    commit_files(builder.worktree, {".gitattributes": "*.py -diff\n"}, "hidden")
    assert "+line 1" in unread(shown(af, builder.id))


@pytest.mark.slow
def test_comments_are_sent_once_and_followed(af: Af, spawn: Spawn) -> None:
    builder = spawn("Do something")
    commit_files(builder.worktree, {"new.py": BODY}, "new")
    assert af("review", builder.id, "--comment", "Why seven?", "--at", "new.py:7-8").returncode == 0
    assert af("review", builder.id, "--comment", "And more tests").returncode == 0
    outside = af("review", builder.id, "--comment", "x", "--at", "new.py:99")
    assert "not in the diff" in outside.stderr
    sent = json.loads(af("review", builder.id, "--send", "--json").stdout)
    assert sent["delivery"]["outcome"] == "submitted"
    assert "new.py:7-8\n> line 7\n> line 8\nWhy seven?\n\nAnd more tests" in sent["text"]
    assert "No comment" in af("review", builder.id, "--send").stderr
    assert states(af, builder.id) == [("submitted", "open", 7), ("submitted", "open", 0)]
    assert af("wait", builder.id, "--timeout", "300").returncode == 0
    commit_files(builder.worktree, {"new.py": "first\n" + BODY}, "moved down")
    assert states(af, builder.id)[0] == ("submitted", "open", 8)
    commit_files(builder.worktree, {"new.py": "first\n" + BODY.replace("line 7\n", "line VII\n")}, "done")
    assert states(af, builder.id)[0] == ("submitted", "answered", 8)
    builder.git("rm", "-q", "new.py")
    builder.git("commit", "-q", "-m", "away with it")
    assert states(af, builder.id)[0][1] == "outdated"


def states(af: Af, id: str) -> list[tuple[str, str, int]]:
    return [(one["delivery"], one["fate"], one["first"]) for one in queue(af, id)[0]["comments"]]


def test_a_comment_nobody_could_take_stays_a_draft(af: Af, builder: Spawned) -> None:
    builder.stop()
    af("review", builder.id, "--comment", "hello")
    held = af("review", builder.id, "--send")
    assert held.returncode == 5
    assert states(af, builder.id) == [("draft", "open", 0)]


@pytest.mark.slow
def test_approving_lands_it(af: Af, builder: Spawned, repo: Path) -> None:
    refused = af("review", builder.id, "--approve")
    assert "No check is declared" in refused.stderr
    assert queue(af)[0]["decision"] is None
    assert af("config", "set", "check.command", "true").returncode == 0
    tip = builder.tip
    done = af("review", builder.id, "--approve", "--yes")
    assert done.returncode == 0, done.stderr
    assert "approved" in done.stdout
    wait_until(lambda: queue(af) == [], what="it to land")
    assert git(repo, "show", "main:new.py") == BODY.strip()
    assert tip in git(repo, "log", "--format=%H", "main")


@pytest.mark.slow
def test_rejecting_says_why(af: Af, spawn: Spawn) -> None:
    builder = spawn("Do something")
    assert "Give a reason" in af("review", builder.id, "--reject", " ").stderr
    done = af("review", builder.id, "--reject", "It does too much", "--json")
    assert done.returncode == 0, done.stderr
    assert "It does too much" in json.loads(done.stdout)["sent"]["text"]
    assert queue(af)[0]["decision"]["word"] == "rejected"
    assert af("wait", builder.id, "--timeout", "300").returncode == 0
    commit_files(builder.worktree, {"better.txt": "better\n"}, "better")
    assert queue(af)[0]["decision"] is None


def test_a_damaged_file_is_refused_by_name(af: Af, builder: Spawned, repo: Path) -> None:
    af("review", builder.id, "--read")
    file = repo / ".agent-farm/runs" / builder.id / "review.json"
    file.write_text("{")
    refused = af("review")
    assert refused.returncode == 1
    assert "review.json is damaged" in refused.stderr
    file.write_text('{"version": 99}')
    assert "has version 99" in af("review").stderr


def test_one_that_is_damaged_hides_no_other(af: Af, spawn: Spawn, repo: Path) -> None:
    one, other = spawn("[[write:one]]").id, spawn("[[write:other]]").id
    for id in (one, other):
        assert af("wait", id, "--timeout", "300").returncode == 0
    assert af("review", one, "--read").returncode == 0
    file = repo / ".agent-farm/runs" / one / "review.json"
    whole = json.loads(file.read_text())
    for added in ({"one": [[1, 40_000_000_000]]}, {"one": [[0, 1]]}, {"../../etc/passwd": [[1, 2]]}):
        file.write_text(json.dumps(whole | {"marks": whole["marks"] | {"added": added}}))
        done = af("review", "--json")
        items = json.loads(done.stdout)["items"]
        assert [item["id"] for item in items if "unread" in item] == [other]
        assert "review.json is damaged" in done.stdout
        assert af("review", other).returncode == 0
        assert af("review", one).returncode == 1


def test_what_may_have_arrived_is_not_sent_again(af: Af, builder: Spawned, repo: Path) -> None:
    """As after a kill in the midst of the delivery."""
    af("review", builder.id, "--comment", "hello")
    file = repo / ".agent-farm/runs" / builder.id / "review.json"
    file.write_text(file.read_text().replace('"draft"', '"sending"'))
    assert "No comment" in af("review", builder.id, "--send").stderr
    assert states(af, builder.id) == [("unconfirmed", "open", 0)]


def test_what_was_read_comes_back_with_its_builder(af: Af, builder: Spawned) -> None:
    af("review", builder.id, "--read")
    builder.stop()
    assert af("prune", builder.id, "--discard-commits").returncode == 0
    assert af("restore", builder.id).returncode == 0
    assert queue(af)[0]["unread"] == 0


@pytest.mark.slow
def test_an_approval_is_taken_back_before_it_lands(af: Af, builder: Spawned, repo: Path) -> None:
    gate = repo.parent / "gate"
    assert af("config", "set", "check.command", f"until [ -e {gate} ]; do sleep 0.1; done").returncode == 0
    assert af("review", builder.id, "--approve", "--yes").returncode == 0
    assert queue(af)[0]["decision"]["word"] == "approved"
    done = af("review", builder.id, "--undo")
    assert "undone: approved" in done.stdout, done.stderr
    gate.touch()
    wait_until(lambda: landing(af)["state"] == "done", what="the queue to be empty")
    assert landing(af)["landed"] == []
    assert queue(af)[0]["decision"] is None
    assert "new.py" not in git(repo, "ls-tree", "--name-only", "main")


def landing(af: Af) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(af("land", "--status", "--json").stdout)
    return found
