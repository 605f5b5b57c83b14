"""Several builders, and several commands at once: each has its answer, and none takes another's work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import file_lock
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.farm.locks import each_held
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
    step = next(number for number, call in enumerate(calls, 1) if " rev-list " in f" {call} ")
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


def test_many_take_two_questions_to_git_each(spawn: Spawn, af: Af, tmp_path: Path) -> None:
    """And one to tmux for all, so that a hundred take seconds."""
    builders = [spawn("--shell") for _ in range(4)]
    stopping = shims.make(tmp_path / "stop", "tmux", 0, ":")
    assert af("stop", "--all", env=stopping).returncode == 0
    kills = [call for call in shims.calls(tmp_path / "stop", "tmux") if "kill-" in call]
    assert len(kills) == 1, kills
    place = tmp_path / "prune"
    done = af("prune", env=shims.make(place, "git", 0, ":"))
    assert sorted(done.stdout.splitlines()) == sorted(f"{b.id} removed, with {b.branch}" for b in builders)
    calls = " ".join(shims.calls(place, "git"))  # two at a time share a line
    assert calls.count(" status ") == 2 * len(builders)
    assert len((place / "pids").read_text().split()) <= 2 * len(builders) + 12, calls


def test_one_that_is_busy_comes_last_and_alone(spawn: Spawn, repo: Path) -> None:
    farm = open_farm(repo)
    first, busy, last = (spawn("--shell").id for _ in range(3))
    done: list[list[str]] = []
    with ExitStack() as elsewhere:
        elsewhere.enter_context(file_lock(farm.paths.builder_lock(busy)))

        def act(farm: Farm, records: Mapping[str, BuilderRecord]) -> dict[str, str]:
            done.append(list(records))
            elsewhere.close()
            return {id: id for id in records}

        assert list(each_held(farm, [first, busy, last], act)) == [(id, id) for id in (first, last, busy)]
    assert done == [[first, last], [busy]]


def test_what_only_reflogs_know_is_kept_for_each(spawn: Spawn, af: Af, repo: Path) -> None:
    """Two are removed at once, and each keeps what the other's branch alone had as well."""
    one, other = spawn("--shell").stop(), spawn("--shell").stop()
    for builder in (one, other):
        commit_files(builder.worktree, {f"given-up-{builder.id}.txt": "x"})
    lost = {builder.id: builder.git("rev-parse", "HEAD") for builder in (one, other)}
    one.git("reset", "-q", "--hard", "main")
    other.git("reset", "-q", "--hard", "main")
    one.git("reset", "-q", "--hard", lost[other.id])
    one.git("reset", "-q", "--hard", "main")
    assert len(json.loads(af("prune", "--json").stdout)["removed"]) == 2
    for builder, commits in ((one, {*lost.values()}), (other, {lost[other.id]})):
        (ref,) = git(
            repo, "for-each-ref", "--format=%(refname)", f"refs/agent-farm/salvage/{builder.id}/"
        ).split()
        assert commits <= set(git(repo, "rev-list", ref).split())
