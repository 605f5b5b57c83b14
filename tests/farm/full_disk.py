"""`python full_disk.py ID REF`: a builder is placed from its checkpoint, and the disk is full from some step.

From the first step, from the second, …, until it is placed all the same; in between the disk has room again,
and the same is done once more. Prints how many steps that were.

Full is what a limit for the size of files comes to: nothing can be written, here and by git, but names can.
"""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.farm.placing_again import place_again
from agent_farm.farm.trash import begun_removals
from tests.farm.stop_at import stop_at
from tests.gitrepo import git

_MOST_STEPS = 400
_, _HARD = resource.getrlimit(resource.RLIMIT_FSIZE)


class _Popen(subprocess.Popen[bytes]):
    """Its program is told of the limit by an error, too, and not killed."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named, restore_signals=False)


def has_room(room: bool) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (_HARD if room else 0, _HARD))


def place(farm: Farm, told: BuilderRecord, ref: str) -> None:
    place_again(farm, told, ref, most_bytes=10**8, why="placed here")


def placed_on_a_full_disk(farm: Farm, told: BuilderRecord, ref: str, step: int) -> bool:
    stop_at(str(step), signal.SIGUSR1)
    try:
        place(farm, told, ref)
    except (AgentFarmError, OSError):
        return False
    finally:
        is_full = resource.getrlimit(resource.RLIMIT_FSIZE)[0] == 0
        has_room(True)
    return not is_full


def main(id: str, ref: str) -> None:
    subprocess.Popen = _Popen  # type: ignore[misc]
    signal.signal(signal.SIGUSR1, lambda *given: has_room(False))
    farm = open_farm(Path.cwd())
    told, kept = replace(farm.registry.read()[id], conversation_id=None), git(farm.root, "rev-parse", ref)
    tip, worktree = git(farm.root, "rev-parse", told.branch), farm.paths.worktree(id)
    for step in range(1, _MOST_STEPS):
        if placed_on_a_full_disk(farm, told, ref, step):
            print(step)
            return
        assert git(farm.root, "rev-parse", ref) == kept
        records = farm.records()  # what was left half made is settled
        place_of = [worktree, *(kept.worktree for kept in begun_removals(farm, id))]
        is_there = any((place / "left.txt").is_file() for place in place_of)
        assert is_there or id not in records, f"step {step}: {told}"
        assert farm.repository.branch_commit(told.branch) in (tip, None)  # it goes with one in the trash
        place(farm, told, ref)
        assert (worktree / "left.txt").read_text() == "not committed\n"
        assert git(worktree, "rev-parse", "HEAD") == tip
    raise AssertionError("the walk does not end")


if __name__ == "__main__":
    main(*sys.argv[1:])
