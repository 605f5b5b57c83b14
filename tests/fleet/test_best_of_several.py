"""Several builders with one task on several machines: compared here, one kept, the others removed there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.fleet.machines import Machines, Node
from tests.fleet.test_fleet import ok, shown, spawned
from tests.gitrepo import commit_files, git

pytestmark = pytest.mark.slow


def with_check(af: Af, repo: Path, command: str) -> None:
    ok(af, "config", "set", "check.command", command)
    git(repo, "add", "agent-farm.toml")
    git(repo, "commit", "-qm", "Checks")


def ids_left(af: Af) -> set[str]:
    return {one["id"] for one in json.loads(ok(af, "status", "--fresh", "--json"))["builders"]}


def test_one_is_kept_and_the_others_go_where_they_are(
    af: Af, big: Node, machines: Machines, repo: Path
) -> None:
    other = machines("other")
    ok(af, "fleet", "add", "ssh://other")
    with_check(af, repo, "ls demo-*")
    spawn = ("spawn", "--runtime", "demo", "Fix the login")
    there = ok(af, *spawn, "--on", "fleet", "-n", "2").split()
    here = ok(af, *spawn).strip()
    assert {shown(af, id)["host"] for id in there} == {"big", "other"}
    ok(af, "wait", here, *there, "--timeout", "120")
    stays, goes = sorted(there, key=lambda id: str(shown(af, id)["host"]))
    found = json.loads(ok(af, "compare", "--yes", "--json", here, *there))
    assert {one["id"] for one in found["builders"]} == {here, *there}
    for one in found["builders"]:
        assert (one["proof"]["state"], one["runtime"], one["files"]) == ("proven", "demo", 1)
        assert one["usage"]["output_tokens"] > 0
        assert one["seconds"] > 0
    kept = json.loads(ok(af, "keep", stays, "--dry-run", "--json"))
    assert set(kept["would_remove"]) == {here, goes}
    assert ids_left(af) == {here, *there}

    (other.farms[0] / ".builders" / goes / "draft").write_text("mine\n")
    done = af("keep", "--land", "--yes", "--json", stays)
    assert done.returncode == 0, done.stderr + done.stdout
    kept = json.loads(done.stdout)
    assert [one["id"] for one in kept["landing"]["landed"]] == [stays]
    assert {one["id"] for one in kept["removed"]} == {here, goes}
    assert ids_left(af) == {stays}
    assert goes not in other.run(str(other.program), "status")
    assert git(repo, "branch", "--list", f"builder/{goes}") == ""
    for id in (goes, here):
        ok(af, "restore", id)
    assert (other.farms[0] / ".builders" / goes / "draft").read_text() == "mine\n"
    assert git(repo, "branch", "--list", f"builder/{goes}") != ""


def test_who_is_at_work_or_moved_on_or_cannot_be_asked_stays_and_is_named(
    af: Af, big: Node, machines: Machines, repo: Path
) -> None:
    other = machines("other")
    ok(af, "fleet", "add", "ssh://other")
    with_check(af, repo, "ls demo-*")
    here = ok(af, "spawn", "--runtime", "demo", "Fix the login").strip()
    moved, busy = spawned(af, "Fix the login"), spawned(af, "Fix the login")
    away = ok(af, "spawn", "--on", "other", "--runtime", "demo", "Fix the login").strip()
    every = (here, moved, busy, away)
    ok(af, "wait", *every, "--timeout", "120")
    ok(af, "conflicts", *every)
    other.stop()
    compared = af("compare", "--yes", *every)
    assert compared.returncode == 0, compared.stderr
    assert f"{away} as last fetched: other cannot be reached" in compared.stderr
    commit_files(big.farms[0] / ".builders" / moved, {"more.txt": "x\n"})
    ok(af, "send", busy, "[[ask:May I?]]")
    ok(af, "wait", busy, "--for", "waiting", "--timeout", "120")
    done = af("keep", here)
    assert done.returncode == 1
    told = " ".join(done.stderr.split())
    assert f"big: {moved} was not removed It has committed since it was compared." in told
    assert f"hint: af compare {' '.join(every)}" in told
    assert f"big: {busy} was not removed It is waiting. hint: af stop {busy}" in told
    assert "other cannot be reached" in told
    other.start()
    assert ids_left(af) == {*every}
    assert f"{away} removed" in af("keep", here).stdout
    assert ids_left(af) == {here, moved, busy}


def test_a_merge_removes_it_there_if_that_is_asked_for(af: Af, big: Node, repo: Path) -> None:
    first, second = spawned(af, "Fix the login"), spawned(af, "Fix the logout")
    ok(af, "wait", first, second, "--timeout", "120")
    ok(af, "send", second, "[[ask:May I?]]")
    ok(af, "wait", second, "--for", "waiting", "--timeout", "120")
    merged = json.loads(ok(af, "merge", "--prune", "--json", first, second))
    assert [one["id"] for one in merged["removed"]] == [first]
    assert [(one["id"], one["reason"]) for one in merged["kept"]] == [(second, "It is waiting.")]
    assert ids_left(af) == {second}
    assert first in ok(af, "restore", "--list")


def test_work_that_comes_back_from_the_queue_is_told_to_its_builder_there(
    af: Af, big: Node, repo: Path
) -> None:
    with_check(af, repo, "test ! -e broken")
    id = spawned(af, "[[write:broken]]")
    ok(af, "wait", id, "--timeout", "120")
    commit_files(big.farms[0] / ".builders" / id, {"broken": "x\n"})
    done = af("land", "--yes", "--json", id)
    (back,) = json.loads(done.stdout)["returned"]
    assert (back["id"], back["told"]) == (id, "submitted"), back
    ok(af, "wait", id, "--timeout", "120")
    assert "message 2" in ok(af, "capture", id, "-n", "200")
