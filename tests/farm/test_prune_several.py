"""Several builders, and several commands at once: each has its answer, and none takes another's work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm import shims
from tests.farm.conftest import Spawned
from tests.farm.test_restore_identity import everything
from tests.gitrepo import commit_files, git, write_files
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

Spawn = Callable[..., Spawned]
DISCARD = ("--discard-changes", "--discard-commits")


@pytest.fixture
def three(spawn: Spawn, repo: Path) -> list[Spawned]:
    """Landed and stopped; git cannot read the index of the second."""
    builders = [spawn("--shell").stop() for _ in range(3)]
    (repo / ".git/worktrees" / builders[1].id / "index").write_text("x")
    return builders


def test_a_damaged_builder_holds_up_no_other(three: list[Spawned], af: Af) -> None:
    first, damaged, last = three
    done = af("prune")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{first.id} removed, with {first.branch}\n{last.id} removed, with {last.branch}\n"
    assert f"{damaged.id} stays: " in done.stderr
    assert "index file" in done.stderr


def test_an_id_that_nobody_has_holds_up_no_other(three: list[Spawned], af: Af) -> None:
    first, *_ = three
    done = af("prune", "task-none-none", first.id)
    assert done.returncode == 1
    assert done.stdout == f"{first.id} removed, with {first.branch}\n"
    assert "No builder task-none-none" in done.stderr


def test_each_ones_result_is_told_and_in_the_json(three: list[Spawned], af: Af) -> None:
    first, damaged, last = three
    done = af("prune", first.id, damaged.id, last.id, "--json")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert [one["id"] for one in document["removed"]] == [first.id, last.id]
    (refused,) = document["refused"]
    assert refused["id"] == damaged.id
    assert "index file" in refused["why"]


def test_a_dry_run_says_the_same_as_json(three: list[Spawned], af: Af) -> None:
    first, damaged, last = three
    done = af("prune", "--dry-run", "--json", first.id, damaged.id, last.id)
    document = json.loads(done.stdout)
    assert document["removed"] == []
    assert document["would_remove"] == [first.id, last.id]
    assert [one["id"] for one in document["refused"]] == [damaged.id]
    assert first.worktree.is_dir()


def test_landed_builders_that_still_run_are_named(spawn: Spawn, af: Af, repo: Path) -> None:
    builder, working = spawn(), spawn("Something else")
    git(repo, "merge", "-q", "--no-edit", builder.branch)
    done = af("prune")
    assert (done.returncode, done.stdout) == (0, "")
    assert "1 landed builder is still running" in done.stderr
    assert "hint: af prune --landed" in done.stderr
    done = af("prune", "--landed")
    assert done.stdout == f"{builder.id} removed, with {builder.branch}\n"
    assert working.state == "idle"


def test_what_is_written_between_evidence_and_rename_is_seen(
    spawn: Spawn, repo: Path, tmp_path: Path
) -> None:
    """The removal is taken back, and the builder refused with the new file as evidence."""
    builder = spawn("--shell").stop()
    place = tmp_path / "counting"
    assert builder.af("prune", builder.id, env=shims.make(place, "git", 0, ":")).returncode == 0
    assert builder.af("restore", builder.id).returncode == 0
    calls = shims.calls(place, "git")
    step = next(number for number, call in enumerate(calls, 1) if " ls-files --stage " in f" {call} ")
    write = f"echo precious > {builder.worktree}/late.txt"

    done = builder.af("prune", builder.id, env=shims.make(tmp_path / "shim", "git", step, write))

    assert done.returncode == 4, done.stdout + done.stderr
    assert "untracked  late.txt" in done.stderr
    assert (builder.worktree / "late.txt").read_text() == "precious\n"
    assert builder.git("branch", "--show-current") == builder.branch
    assert "locked" not in git(repo, "worktree", "list", "--porcelain")
    assert not list((repo / ".agent-farm/trash").iterdir())


def paused(repo: Path, module: str, function: str, go_on: Path, *words: str) -> subprocess.Popen[str]:
    """`af WORDS`, which says "paused" before it calls the function, and waits for the file."""
    program = (
        "import sys, time, importlib\n"
        f"module = importlib.import_module({module!r})\n"
        f"real = getattr(module, {function!r})\n"
        "def slow(*args, **options):\n"
        f"    open({str(go_on)!r} + '.paused', 'w').close()\n"
        f"    import os\n    while not os.path.exists({str(go_on)!r}): time.sleep(0.01)\n"
        "    return real(*args, **options)\n"
        f"setattr(module, {function!r}, slow)\n"
        "from agent_farm.cli.main import main\n"
        "main(sys.argv[1:])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        cwd=repo,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_until(Path(f"{go_on}.paused").exists, what=f"af {' '.join(words)} at {function}", timeout=60)
    return process


def test_doctor_beside_a_removal_keeps_its_hands_off(
    spawn: Spawn, af: Af, repo: Path, tmp_path: Path
) -> None:
    commit_files(repo, {".gitignore": "*.env\n"})
    builder = spawn("--shell").stop()
    write_files(builder.worktree, {"secret.env": "KEY\n"})
    before = everything(builder.worktree)
    go_on = tmp_path / "go-on"
    pruning = paused(repo, "agent_farm.farm.removal", "let_go", go_on, "prune", builder.id)
    doctor = subprocess.Popen(
        [sys.executable, "-m", "agent_farm", "doctor", "--fix"],
        cwd=repo,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    go_on.touch()
    assert "removed" in pruning.communicate(timeout=120)[0]
    doctor.communicate(timeout=120)
    assert not builder.worktree.exists()
    assert af("doctor", "--fix").returncode == 0
    assert af("restore", builder.id).returncode == 0
    assert everything(builder.worktree) == before


def test_expire_waits_for_a_restore_and_takes_nothing_from_it(
    spawn: Spawn, af: Af, repo: Path, tmp_path: Path
) -> None:
    builder = spawn("--shell").stop()
    write_files(builder.worktree, {"notes.txt": "WORK\n"})
    assert af("prune", builder.id, *DISCARD).returncode == 0
    go_on = tmp_path / "go-on"
    restoring = paused(repo, "agent_farm.farm.restoring", "take_out", go_on, "restore", builder.id)
    expiring = subprocess.Popen(
        [sys.executable, "-m", "agent_farm", "prune", "--expire", "0"],
        cwd=repo,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    go_on.touch()
    assert "restored" in restoring.communicate(timeout=120)[0]
    said = expiring.communicate(timeout=120)[0]
    assert "deleted for good" not in said
    assert (builder.worktree / "notes.txt").read_text() == "WORK\n"
    assert builder.state == "stopped"


def test_what_af_does_not_understand_stays_in_the_trash(spawn: Spawn, af: Af, repo: Path) -> None:
    builder = spawn("--shell").stop()
    assert af("prune", builder.id).returncode == 0
    (kept,) = (repo / ".agent-farm/trash").iterdir()
    record = json.loads((kept / "record.json").read_text())
    (kept / "record.json").write_text(json.dumps({**record, "version": 1}))
    assert af("restore", builder.id).returncode == 1
    assert "left alone" in af("doctor", "--fix").stdout
    assert af("prune", "--expire", "0").returncode == 0
    assert (kept / "worktree/README.md").exists()


def test_a_removal_killed_at_its_first_write_leaves_nothing(spawn: Spawn, af: Af, repo: Path) -> None:
    builder = spawn("--shell").stop()
    begun = repo / f".agent-farm/trash/{builder.id}-100"
    write_files(begun, {".record.json.1.tmp": "{"})
    assert af("doctor", "--fix").returncode == 0
    assert not begun.exists()
