"""OpenSpec's own program beside what `af` reads and marks: the same tasks, from the same files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_farm.farm.farm import open_farm
from agent_farm.operations.spawn_items import read_spec
from tests.conftest import Af
from tests.gitrepo import git, write_files
from tests.runtimes.real.clis import BIN, require_installed

pytestmark = pytest.mark.runtimes

CHANGE = "openspec/changes/dark"
TASKS = (
    "## 1. Build\n- [x] 1.1 Toggle\n- [ ] 1.2 Store it\n  in the profile\n\n## 2. Check\n- [ ] 2.1 By hand\n"
)


def openspec(repo: Path, *args: str) -> str:
    require_installed("openspec")
    quiet = {
        "DO_NOT_TRACK": "1",
        "OPENSPEC_TELEMETRY": "0",
        "HOME": str(repo.parent),
        "PATH": f"{BIN}:/usr/bin:/bin",
    }
    done = subprocess.run(
        ["openspec", *args], cwd=repo, env=quiet, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def asked(repo: Path, *args: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(openspec(repo, *args, "--json"))
    return found


@pytest.mark.parametrize("schema", ["spec-driven", "own"])
def test_the_same_tasks_and_files_as_openspec_and_its_mark(repo: Path, af: Af, schema: str) -> None:
    openspec(repo, "init", "--tools", "none", ".")
    why = "proposal.md"
    if schema == "own":
        openspec(repo, "schema", "fork", "spec-driven", "own")
        file, why = repo / "openspec/schemas/own/schema.yaml", "why.md"
        file.write_text(file.read_text().replace("generates: proposal.md", f"generates: {why}"))
    openspec(repo, "new", "change", "dark", "--schema", schema)
    more = {
        why: "## Why\nEyes.\n",
        "design.md": "# How\n",
        "specs/ui/spec.md": "## ADDED Requirements\n",
        "tasks.md": TASKS,
    }
    write_files(repo, {f"{CHANGE}/{name}": text for name, text in more.items()})
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "change")
    theirs = asked(repo, "instructions", "apply", "--change", "dark")
    farm = open_farm(repo)
    ours = read_spec(farm, CHANGE, farm.repository.resolve_commit("HEAD"))
    left = [one["description"] for one in theirs["tasks"] if not one["done"]]
    assert [f"{one.key} {one.title}" for one in ours.items] == left == ["1.2 Store it", "2.1 By hand"]
    files = {str(Path(path).relative_to(repo)) for many in theirs["contextFiles"].values() for path in many}
    assert files == {f"{CHANGE}/{name}" for name in more}
    assert {
        name for name in files if not any(name == one or name.startswith(f"{one}/") for one in ours.reads)
    } == set()
    done = af("spawn", "--runtime", "demo", "--json", "--spec", CHANGE, "--item", "1.2")
    id = json.loads(done.stdout)["builder"]["id"]
    assert af("wait", id, "--timeout", "60").returncode == 0
    assert af("merge", id).returncode == 0
    (change,) = asked(repo, "list")["changes"]
    assert (change["completedTasks"], change["totalTasks"]) == (2, 3)
