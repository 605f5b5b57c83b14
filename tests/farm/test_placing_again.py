"""A checkpoint of a builder, and a builder of a checkpoint, on one machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_farm.builders.status import Status
from agent_farm.errors import AgentFarmError
from agent_farm.farm import placing_again
from agent_farm.farm.checkpointing import make_checkpoint
from agent_farm.farm.farm import open_farm
from agent_farm.farm.healing import settle_interrupted_starts
from agent_farm.farm.runtime_start import _is_directory_of
from agent_farm.git.checkpoint_making import checkpoint_ref, hold_worktree
from tests.conftest import Af
from tests.farm.conftest import Spawned
from tests.gitrepo import commit_files, git


def test_one_whose_start_was_cut_short_stays_failed(spawn: Callable[..., Spawned]) -> None:
    """Its worktree may not be whole: an agent would take every missing file for deleted."""
    one = spawn()
    farm = open_farm(one.repo)
    record = farm.registry.put(farm.registry.read()[one.id].with_state("failed", "its start was cut short"))
    farm.run(one.id).launch.unlink()
    make_checkpoint(farm, record, Status("failed", "process"), one.tip, None)
    told, ref = replace(record, state="running", reason=None), checkpoint_ref(one.id)
    placed, starts = placing_again.place_again(farm, told, ref, most_bytes=10**8, why="placed here")
    assert (placed.state, placed.reason, starts) == ("failed", "its start was cut short", False)


def test_what_went_on_here_stays_when_it_is_placed_here(
    spawn: Callable[..., Spawned], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its review and its proof outlast a placing that fails, one that is killed, and the next."""
    one = spawn()
    farm = open_farm(one.repo)
    record, tip = farm.registry.read()[one.id], one.tip
    make_checkpoint(farm, record, Status("idle", "process"), tip, None)
    run, ref = farm.run(one.id), checkpoint_ref(one.id)
    told = replace(record, conversation_id=None)

    def place() -> None:
        placing_again.place_again(farm, told, ref, most_bytes=10**8, why="placed here")

    for path in run.of_the_work:
        path.write_text("{}")
    place()
    assert all(path.is_file() for path in run.of_the_work), "one that was here goes into the trash"
    with monkeypatch.context() as patch:
        patch.setattr(placing_again, "_fill", fail)
        with pytest.raises(AgentFarmError, match="No space"):
            place()
    assert one.id not in farm.registry.read()
    assert not one.worktree.exists()
    assert git(one.repo, "rev-parse", one.branch) == tip, "its branch stays"
    assert all(path.is_file() for path in run.of_the_work), "one that failed"
    with monkeypatch.context() as patch:
        patch.setattr(placing_again, "_fill", fail)
        patch.setattr(placing_again, "remove_traces", lambda *given: None)
        with pytest.raises(AgentFarmError, match="No space"):
            place()
    assert [one.done for one in settle_interrupted_starts(farm, farm.registry.read())] == [True]
    assert all(path.is_file() for path in run.of_the_work), "one that was killed"
    place()
    assert git(one.repo, "rev-parse", one.branch) == tip
    assert all(path.is_file() for path in run.of_the_work)


def fail(*given: object, **named: object) -> None:
    raise AgentFarmError("No space left on device")


def test_what_git_cannot_read_is_left_out_alone(spawn: Callable[..., Spawned]) -> None:
    one = spawn("--shell")
    commit_files(one.worktree, {"pipe": "1\n"})
    (one.worktree / "pipe").unlink()
    os.mkfifo(one.worktree / "pipe")
    (one.worktree / "left.txt").write_text("left\n")
    farm = open_farm(one.repo)
    held = hold_worktree(farm.tree(farm.registry.read()[one.id]), most_bytes=10**8)
    assert held.left_out == ("pipe",)
    assert git(one.repo, "show", f"{held.work}:left.txt") == "left"


def test_a_link_of_a_checkpoint_leads_no_runtime_out(spawn: Callable[..., Spawned], tmp_path: Path) -> None:
    """Another machine says which directory of the worktree it works in, and what is in the worktree."""
    one = spawn("--shell")
    (one.worktree / "out").symlink_to(tmp_path)
    (one.worktree / "sub").mkdir()
    (one.worktree / "in").symlink_to("sub")
    for name, is_of_it in (("out", False), ("sub", True), ("in", True), (".", True), ("none", False)):
        assert _is_directory_of(one.worktree, one.worktree / name) is is_of_it, name


@pytest.mark.slow
def test_a_disk_that_is_full_at_each_step(spawn: Callable[..., Spawned], af: Af) -> None:
    """What was there stays, in the trash where it is in the way, and the same again succeeds."""
    one = spawn()
    (one.worktree / "left.txt").write_text("not committed\n")
    farm = open_farm(one.repo)
    make_checkpoint(farm, farm.registry.read()[one.id], Status("idle", "process"), one.tip, None)
    done = subprocess.run(
        [sys.executable, "-m", "tests.farm.full_disk", one.id, checkpoint_ref(one.id)],
        cwd=one.repo,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20, "it has been walked through"
    healed = af("doctor", "--fix")
    assert healed.returncode == 0, healed.stdout
