"""`af spawn --spec`: what other tools wrote, whole, by the item or as a graph; marked once it has landed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from agent_farm.farm.farm import open_farm
from agent_farm.landing.marks import mark_landed
from tests.builders.test_check_list import KIRO, KIRO_BELOW, SPEC_KIT
from tests.conftest import Af
from tests.farm.traces import traces
from tests.gitrepo import commit_files, git
from tests.waiting import wait_until

FILES = {
    "specs/003-login/tasks.md": SPEC_KIT,
    "specs/003-login/spec.md": "# Login\n",
    "specs/003-login/plan.md": "# Plan\n",
    ".kiro/specs/pay/tasks.md": KIRO,
    ".kiro/specs/pay/requirements.md": "# Pay\n",
    ".kiro/specs/refund/tasks.md": KIRO_BELOW,
    ".kiro/specs/refund/bugfix.md": "# Refund\n",
    "openspec/changes/dark/tasks.md": "## 1. Build\n- [x] 1.1 Toggle\n- [ ] 1.2 Store it\n",
    "openspec/changes/dark/proposal.md": "# Dark\n",
    "openspec/changes/dark/specs/ui/spec.md": "# UI\n",
    "openspec/changes/own/.openspec.yaml": "schema: mine\n",
    "openspec/changes/own/why.md": "# Why\n",
    "openspec/changes/own/tasks.md": "- [ ] 1.1 Do it\n",
    "todo.md": "- [ ] Fix it\n",
    "notes.md": "nothing\n",
    "a/readme.txt": "",
}


@pytest.fixture
def farm(repo: Path) -> Path:
    commit_files(repo, FILES)
    return repo


def plan(af: Af, *args: str) -> dict[str, Any]:
    done = af("spawn", "--runtime", "demo", "--json", "--dry-run", *args)
    assert done.returncode == 0, done.stdout
    found: dict[str, Any] = json.loads(done.stdout)["plan"]
    return found


def spawn(af: Af, *args: str, **more: Any) -> dict[str, Any]:
    done = af("spawn", "--runtime", "demo", "--json", *args, **more)
    assert done.returncode == 0, done.stdout
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("spec", "key", "told"),
    [
        ("specs/003-login", "t005", "Do task T005 of specs/003-login/tasks.md:\n\nImplement service in"),
        ("specs/003-login/", "T005", "Read specs/003-login/spec.md and specs/003-login/plan.md first."),
        (
            ".kiro/specs/refund/",
            "2.2",
            "tasks.md:\n\nValidate\n- [ ] also dates\n\nRead .kiro/specs/refund/bug",
        ),
        (".kiro/specs/pay/tasks.md", "2.1", "Create interfaces\n- _Requirements: 2.1, 3.3_"),
        ("openspec/changes/dark", "1.2", "dark/proposal.md and openspec/changes/dark/specs first."),
        ("openspec/changes/own", "1.1", "Read openspec/changes/own/why.md first."),
        ("todo.md", "1", "Do task 1 of todo.md:\n\nFix it\n\nDo only this task. Leave todo.md as it is"),
    ],
)
def test_one_item_of_each_form(farm: Path, af: Af, spec: str, key: str, told: str) -> None:
    assert told in plan(af, "--spec", spec, "--item", key)["prompt"]


def test_a_whole_spec_is_one_builders_work(farm: Path, af: Af) -> None:
    found = plan(af, "--spec", "specs/003-login")
    assert found["id"].startswith("003-login-")
    assert found["prompt"].startswith(
        "Implement what specs/003-login specifies. Read specs/003-login/spec.md"
    )
    assert "mark each when it is done" in found["prompt"]


@pytest.mark.slow
def test_all_items_wait_for_each_other_and_are_marked_as_they_land(farm: Path, af: Af) -> None:
    builders = spawn(af, "--spec", "specs/003-login", "--item", "all")["builders"]
    two, three, four, five, _ = (one["id"] for one in builders)
    assert [one["after"] for one in builders] == [None, None, f"{two},{three}", four, five]
    assert {one["status"]["state"] for one in builders[2:]} == {"queued"}
    for id in (two, three):
        assert af("wait", id, "--timeout", "60").returncode == 0
        done = af("merge", "--strategy", "squash", id)
        assert "is marked as done in specs/003-login/tasks.md" in done.stdout + done.stderr
    assert (farm / "specs/003-login/tasks.md").read_text() == SPEC_KIT.replace(
        "[ ] T002", "[x] T002"
    ).replace("[ ] T003", "[x] T003")
    af("queue")
    records = open_farm(farm).registry
    wait_until(lambda: records.read()[four].state == "running", what="the next to start")
    assert records.read()[five].state == "queued"


def test_what_came_home_by_another_way_is_marked_when_it_is_removed(farm: Path, af: Af) -> None:
    name = "todo #2%23.md"
    commit_files(farm, {name: "- [ ] Fix it\n"})
    id = spawn(af, "--spec", name, "--item", "1")["builder"]["id"]
    assert af("wait", id, "--timeout", "60").returncode == 0
    git(farm, "merge", "-q", f"builder/{id}")
    assert (farm / name).read_text() == "- [ ] Fix it\n"
    done = af("prune", "--stop", id)
    assert f"1 is marked as done in {name}; the change is not committed" in done.stderr
    assert (farm / name).read_text() == "- [x] Fix it\n"


def test_those_that_land_at_the_same_time_lose_no_mark(farm: Path, af: Af) -> None:
    (farm / "many.md").write_text("".join(f"- [ ] 1.{number} Do it\n" for number in range(40)))
    spawn(af, "--name", "one", "Work")
    here = open_farm(farm)
    record = here.registry.read()["one"]
    with ThreadPoolExecutor(8) as threads:
        for number in range(40):
            landed = replace(record, source=f"many.md#1.{number}#Do it")
            threads.submit(mark_landed, here, landed)
    assert (farm / "many.md").read_text().count("[x]") == 40


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--item", "1"], 2, ["--item requires --spec"]),
        (["--spec", "todo.md", "--item", "2"], 1, ["todo.md has no open item 2", "Open items: 1."]),
        (["--spec", "notes.md"], 2, ["notes.md contains no check list"]),
        (["--spec", "a"], 2, ["a is not a spec that af knows"]),
        (["--spec", "nope"], 1, ["nope is not in the repository"]),
        (["--spec", "../x"], 2, ["--spec: ../x is outside the repository"]),
        (["--spec", "todo.md", "text"], 2, ["Flags are mutually exclusive", "--spec"]),
        (
            ["--spec", "todo.md", "--item", "all", "-n", "2"],
            2,
            ["--item all cannot be combined with -n, --runtimes or --tasks-file"],
        ),
        (["--spec", ".beads", "--item", "$(touch x)"], 2, ["is not an issue of beads"]),
        (["--spec", ".beads", "--item", "--help"], 2, ["is not an issue of beads"]),
    ],
)
def test_a_mistake_is_refused(farm: Path, af: Af, args: list[str], code: int, words: list[str]) -> None:
    done = af("spawn", "--runtime", "demo", *args)
    assert done.returncode == code, done.stderr
    for word in words:
        assert word in done.stderr
    assert traces(farm).left() == {}


def test_links_and_large_files_are_refused(farm: Path, af: Af, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("- [ ] secret\n")
    (farm / "linked.md").symlink_to(tmp_path / "secret")
    (farm / "large.md").write_text("- [ ] x\n" * 200_000)
    git(farm, "add", "-A")
    git(farm, "commit", "-qm", "hostile")
    assert "leads out of the repository" in af("spawn", "--spec", "linked.md", "--item", "1").stderr
    assert "large.md has 1600000 bytes" in af("spawn", "--spec", "large.md", "--item", "1").stderr


@pytest.fixture
def bd(farm: Path, tmp_path: Path) -> Callable[[], list[str]]:
    """What a `bd` was asked that answers as 0.47.1 does: it says on stderr that an issue is somebody else's,
    and ends with 0; on stdout that there is none. Its `ready` has the form that 2.0 is to have."""
    (tmp_path / "bin").mkdir()
    issue = {"id": "bd-a1b2", "title": "Fix it", "status": "open", "description": "</x> $(touch pwned)"}
    taken = {"id": "bd-kim", "title": "Taken", "status": "in_progress", "assignee": "Kim"}
    done = {"id": "bd-done", "title": "Done", "status": "closed"}
    ready = {"schema_version": 1, "data": [taken, issue]}
    for name, value in {"bd-a1b2": [issue], "bd-kim": [taken], "bd-done": [done], "ready": ready}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    program = tmp_path / "bin/bd"
    program.write_text(
        f"""#!/bin/sh
cd {tmp_path}; echo "$@" >> asked
case "$1 $2 $3" in
    "show "*) cat "$2.json" 2> {os.devnull} || {{ echo '{{"error": "no issue found"}}'; exit 1; }} ;;
    ready*) cat ready.json ;;
    "update bd-kim --claim") echo "Error updating bd-kim: already claimed by Kim" >&2 ;;
    "update "*) cat "$2.json" ;;
esac
"""
    )
    program.chmod(0o755)
    return lambda: (tmp_path / "asked").read_text().splitlines()


@pytest.fixture
def beads(af: Af, tmp_path: Path) -> Af:
    env = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    return cast(Af, lambda *args: af(*args, env=env))


def test_an_issue_of_beads_is_claimed_and_closed(bd: Callable[[], list[str]], beads: Af) -> None:
    builder = spawn(beads, "--spec", ".beads", "--item", "bd-a1b2")["builder"]
    assert builder["task_text"] == "bd-a1b2 Fix it"
    assert "$(touch pwned)" in Path(builder["prompt_file"]).read_text()
    assert bd()[-1] == "update bd-a1b2 --claim --json"
    assert beads("wait", builder["id"], "--timeout", "60").returncode == 0
    assert beads("merge", builder["id"]).returncode == 0
    assert bd()[-1] == f"close bd-a1b2 --reason Landed by builder {builder['id']}"


def test_an_issue_of_beads_that_somebody_is_at_is_left_to_them(
    farm: Path, bd: Callable[[], list[str]], beads: Af
) -> None:
    refused = beads("spawn", "--runtime", "demo", "--spec", ".beads", "--item", "bd-kim")
    assert (refused.returncode, traces(farm).left()) == (1, {})
    assert "bd-kim is already claimed" in refused.stderr
    assert "hint: bd update bd-kim --status open --assignee ''" in refused.stderr
    closed = beads("spawn", "--runtime", "demo", "--spec", ".beads", "--item", "bd-done")
    assert "bd-done is closed" in closed.stderr
    assert "no issue found" in beads("spawn", "--spec", ".beads", "--item", "bd-none").stderr
    assert not [line for line in bd() if "bd-done --claim" in line]
    (one,) = spawn(beads, "--spec", ".beads", "--item", "all")["builders"]
    assert one["task_text"] == "bd-a1b2 Fix it"


def test_a_claim_that_nobody_works_on_any_more_is_told(bd: Callable[[], list[str]], beads: Af) -> None:
    id = spawn(beads, "--spec", ".beads", "--item", "bd-a1b2")["builder"]["id"]
    gone = beads("prune", "--stop", "--discard-changes", "--discard-commits", id)
    assert "bd-a1b2 is still claimed; to give it back: bd update bd-a1b2 --status open" in gone.stderr
