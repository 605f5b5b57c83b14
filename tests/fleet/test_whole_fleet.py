"""Verbs over builders of all machines, and those that work at home on what was fetched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.fleet.machines import Machines, Node
from tests.fleet.test_fleet import ok, shown, spawned
from tests.gitrepo import commit_files, git
from tests.landing.test_pull_requests import made

pytestmark = pytest.mark.slow


def states(af: Af) -> dict[str, str]:
    return {
        one["id"]: one["status"]["state"]
        for one in json.loads(ok(af, "status", "--fresh", "--json"))["builders"]
    }


def test_words_and_all_mean_builders_on_every_machine(
    af: Af, big: Node, machines: Machines, repo: Path
) -> None:
    other = machines("other")
    ok(af, "fleet", "add", "ssh://other")
    ids = [
        ok(af, "spawn", "--runtime", "demo", "--on", on, f"Fix {on}").strip()
        for on in ("big", "other", "local")
    ]
    asks = ok(af, "spawn", "--runtime", "demo", "--on", "big", "[[ask:May I?]]").strip()
    ok(af, "wait", *ids, asks, "--timeout", "120")
    sent = ok(af, "send", "--idle", "And the tests")
    assert sorted(sent.split()) == sorted([*ids, *["submitted"] * 3])
    ok(af, "wait", *ids, "--timeout", "120")
    assert asks in af("status", "@waiting").stdout
    ok(af, "merge", ids[0], ids[2])
    left = af("prune")
    assert left.returncode == 0, left.stderr
    assert set(states(af)) == {*ids, asks}, "idle ones are only told of"
    assert "2 landed builders are still running" in left.stderr
    assert "removed" in ok(af, "prune", "--landed")
    assert set(states(af)) == {ids[1], asks}
    other.stop()
    done = af("stop", "--all")
    assert f"{asks} stopped" in done.stdout
    assert "other cannot be reached" in done.stderr
    assert done.returncode == 1
    other.start()
    assert ok(af, "stop", "--all") == f"{ids[1]} stopped\n"
    assert set(states(af).values()) == {"stopped"}
    assert "not landed" in (told := ok(af, "prune")) or told == ""
    assert set(states(af)) == {ids[1], asks}


def test_check_and_review_work_here_on_what_was_fetched(af: Af, big: Node, repo: Path) -> None:
    ok(af, "config", "set", "check.command", "ls demo-*")
    git(repo, "add", "agent-farm.toml")
    git(repo, "commit", "-qm", "Checks")
    id = spawned(af, "Fix the login")
    ok(af, "wait", id, "--timeout", "120")
    checked = af("check", "--yes", id)
    assert checked.returncode == 0, checked.stderr + checked.stdout
    assert shown(af, id)["proof"]["state"] == "proven"
    (item,) = json.loads(ok(af, "review", "--json"))["items"]
    assert (item["id"], item["files"], item["unread"] > 0) == (id, 1, True)
    assert "1 unread" in ok(af, "review", id)
    ok(af, "review", id, "--read")
    assert json.loads(ok(af, "review", "--json"))["items"][0]["unread"] == 0
    sent = ok(af, "review", id, "--reject", "It is not what I want")
    assert "submitted" in sent
    ok(af, "wait", id, "--timeout", "120")
    assert "message 2" in ok(af, "capture", id, "-n", "100")
    big.stop()
    late = af("review", id)
    assert late.returncode == 0, late.stderr
    assert "as last fetched" in late.stderr
    assert "0 problems" in af("doctor").stdout or "belongs to no builder" not in af("doctor").stdout
    big.start()
    ok(af, "review", id, "--approve")


def test_sync_moves_it_onto_what_its_base_is_here(af: Af, big: Node, repo: Path) -> None:
    id = spawned(af, "Fix the login")
    ok(af, "wait", id, "--timeout", "120")
    commit_files(repo, {"mine.txt": "mine\n"})
    moved = json.loads(ok(af, "sync", "--json", id))["synced"][0]
    assert (moved["base"], moved["base_commit"]) == ("main", git(repo, "rev-parse", "main"))
    assert (shown(af, id)["git"]["ahead"], shown(af, id)["git"]["behind"]) == (1, 0)
    assert "mine.txt" not in ok(af, "diff", id)
    ok(af, "merge", id)
    assert git(repo, "rev-list", "--count", "--merges", "HEAD") in ("0", "1")
    assert "mine.txt" in git(repo, "ls-files")


def test_a_pull_request_of_its_work_is_opened_from_here(
    af: Af, big: Node, repo: Path, tmp_path: Path
) -> None:
    forge = made("gh", tmp_path, repo, af)
    id = spawned(af, "Fix the login")
    ok(af, "wait", id, "--timeout", "120")
    (one,) = forge.told(id)
    assert (one["did"], one["pull_request"]["number"]) == ("opened", 1)
    assert forge.tip(f"builder/{id}") == git(repo, "rev-parse", f"builder/{id}")
    assert shown(af, id)["pull_request"]["number"] == 1
    forge.change(state="closed")
    assert forge("pr", "--refresh", id).returncode == 0
    assert shown(af, id)["pull_request"]["state"] == "closed"
